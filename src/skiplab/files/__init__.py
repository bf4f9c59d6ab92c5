"""Files and folders on disk: the one place that makes, replaces, checks, sets aside and removes them.

trouble.py     what a disk refuses and what is damaged, as sentences with the path and the remedy
leftovers.py   what is being written, and what killed writers left
writing.py     writing aside and putting in place: a reader sees the old or the new, never half of one
turns.py       several files that belong together are moved by one process at a time, and read by none meanwhile
sealing.py     checksums: what was stored is what is read, or is said to be damaged
"""

from skiplab.files.leftovers import aside_folder as aside_folder
from skiplab.files.leftovers import remove as remove
from skiplab.files.leftovers import remove_empty as remove_empty
from skiplab.files.leftovers import sweep as sweep
from skiplab.files.sealing import read_bytes as read_bytes
from skiplab.files.sealing import read_json as read_json
from skiplab.files.sealing import read_sealed as read_sealed
from skiplab.files.sealing import sealed_json as sealed_json
from skiplab.files.sealing import unsealed_json as unsealed_json
from skiplab.files.sealing import write_json as write_json
from skiplab.files.sealing import write_sealed as write_sealed
from skiplab.files.trouble import Damaged as Damaged
from skiplab.files.trouble import DamageFound as DamageFound
from skiplab.files.trouble import DiskTrouble as DiskTrouble
from skiplab.files.trouble import check_writable as check_writable
from skiplab.files.trouble import kind_of as kind_of
from skiplab.files.trouble import writing_to as writing_to
from skiplab.files.turns import turn as turn
from skiplab.files.writing import move as move
from skiplab.files.writing import replacing as replacing
from skiplab.files.writing import set_aside as set_aside
from skiplab.files.writing import write_bytes as write_bytes
from skiplab.files.writing import write_folder as write_folder
