#!/usr/bin/env bash
# What `make install` does for your shell, and `make uninstall` undoes: shell.sh add|remove UV
# add: the folder of uv's tools on PATH, if it is not, and completion. Each file that is written is named.
set -euo pipefail
uv=$2
folder=$("$uv" tool dir --bin)
program=$folder/mcpfactory
shells="bash zsh fish"

place() { # where typer puts the completion of a shell
  case $1 in
    bash) echo "$HOME/.bash_completions/mcpfactory.sh" ;;
    zsh) echo "$HOME/.zfunc/_mcpfactory" ;;
    fish) echo "$HOME/.config/fish/completions/mcpfactory.fish" ;;
  esac
}

add() {
  echo "$("$program" --version) is installed: $program"
  local shell file found said
  shell=$(basename "${SHELL:-none}")
  file=$(place "$shell")
  if [ -z "$file" ]; then
    echo "hint: for completion, in your shell: mcpfactory --install-completion"
  elif [ ! -f "$file" ] && "$program" --install-completion "$shell" >/dev/null; then
    echo "completion of $shell: $file, loaded by new shells"
  fi
  case ":$PATH:" in
    *":$folder:"*)
      found=$(command -v mcpfactory)
      [ "$found" = "$program" ] || echo "hint: $found comes first on PATH; remove it, or put $folder before it"
      ;;
    # uv reports an error if the file already has the line, which a shell reads only at its start
    *) said=$("$uv" tool update-shell 2>&1) && echo "$said" || echo "hint: open a new shell, or run: export PATH=\"$folder:\$PATH\"" ;;
  esac
}

remove() {
  local shell file rest rc=$HOME/.bashrc line
  line="source '$(place bash)'"
  for shell in $shells; do
    file=$(place "$shell")
    if [ -f "$file" ]; then rm "$file" && echo "removed $file"; fi
  done
  if [ -f "$rc" ] && grep -qxF "$line" "$rc"; then
    rest=$(grep -vxF "$line" "$rc" || true)
    printf '%s\n' "$rest" >"$rc" && echo "removed a line from $rc"
  fi
  if [ -e "$program" ]; then
    "$uv" tool uninstall mcpfactory
  else
    echo "there is no $program"
  fi
}

"$1"
