from mcpfactory.main import main

main()
