"""`python -m cynosure`."""

from cynosure.cli.main import run

if __name__ == "__main__":
    run()
