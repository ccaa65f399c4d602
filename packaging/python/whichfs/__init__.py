"""Which filesystem, tuned how, for an SD card, eMMC or USB stick.

The program is a file of this package; `program()` gives its path.
"""

from whichfs._program import program

__all__ = ["program"]
