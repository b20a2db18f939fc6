"""What stages build with: programs that they run, wheels, and the environment of a candidate."""
