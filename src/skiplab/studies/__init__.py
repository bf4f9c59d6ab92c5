"""Every study, one folder a paper; the catalogue is what the command line lists."""

from skiplab.reproduction.catalogue import Catalogue
from skiplab.studies import balduzzi2017, littwin2017, orhan2017, orhan2018, yu2019

CATALOGUE = Catalogue.of(
    papers=(orhan2017.PAPER, orhan2018.PAPER, yu2019.PAPER, balduzzi2017.PAPER, littwin2017.PAPER),
    items=(
        *orhan2017.STUDIES,
        *orhan2018.STUDIES,
        *yu2019.STUDIES,
        *balduzzi2017.STUDIES,
        *littwin2017.STUDIES,
    ),
)
