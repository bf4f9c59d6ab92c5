"""Every study, one folder a paper; the catalogue is what the command line lists."""

from skiplab.reproduction.catalogue import Catalogue
from skiplab.studies import orhan2017, orhan2018

CATALOGUE = Catalogue(
    papers=(orhan2017.PAPER, orhan2018.PAPER), studies=(*orhan2017.STUDIES, *orhan2018.STUDIES)
)
