"""What every stage uses and none of them is: arguments, files, progress."""
