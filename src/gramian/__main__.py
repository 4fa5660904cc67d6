"""`python -m gramian`: the command line, where the command is not on the path."""

from gramian.app.cli import main

if __name__ == "__main__":
    main()
