"""``python -m helpers.simgpu --validate``: the simulator beside public measurements."""

import argparse


def main() -> None:
    """Parse the command line and print the table."""
    parser = argparse.ArgumentParser(prog="python -m helpers.simgpu", description=__doc__)
    parser.add_argument("--validate", action="store_true", help="print the validation table")
    if not parser.parse_args().validate:
        parser.print_help()
        return
    from helpers.simgpu import validate

    print(validate.report())


if __name__ == "__main__":
    main()
