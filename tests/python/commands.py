"""Running the command in the process of a test."""

from warpstack.cli import main


def runner(capfd):
    """Return a function that runs a command, which must succeed, and returns its output and its errors."""

    def call(*arguments):
        status = main([str(argument) for argument in arguments])
        out, err = capfd.readouterr()
        assert status == 0, err
        return out, err

    return call
