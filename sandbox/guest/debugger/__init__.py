"""The debugger that runs inside the program's own interpreter. Standard library only, Python 3.7 syntax."""
