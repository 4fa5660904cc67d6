"""Some figures of each table and picture of the papers: the paper's, those of peers, and ours."""

from benchmarks._coverage import BILGO, BIS, DML_EIG, LRO, SQLP
from benchmarks._headlines import besides, bilgo, bis, dml_eig, lro, sqlp
from benchmarks._headlines.base import Cell, Headline, is_better, line, number, own

__all__ = ["BESIDES", "HEADLINES", "Cell", "Headline", "is_better", "line", "number", "own"]

PAPERS = {BILGO: bilgo, LRO: lro, DML_EIG: dml_eig, SQLP: sqlp, BIS: bis}
HEADLINES = {
    (paper, place): lines
    for paper, module in PAPERS.items()
    for place, lines in module.HEADLINES.items()
}
"""By the paper and the place in it, as in `_coverage.ITEMS`."""
BESIDES = besides.HEADLINES
