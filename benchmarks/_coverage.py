"""Every table and figure of the five papers, and the benchmark that makes it here."""

from typing import NamedTuple


class Item(NamedTuple):
    """A table or figure: its place and contents, the benchmark that reproduces it, and a remark."""

    paper: str
    place: str
    shows: str
    benchmark: str | None
    remark: str = ""


BILGO = "BILGO (Hao, Yuan, Ghanem 2013)"
LRO = "LRO (Yuan, Zhang, Ghanem, Hao 2013)"
DML_EIG = "DML-eig (Ying, Li 2012)"
SQLP = "SQLP (Wu 2011)"
BIS = "BiS (Hu, Kwok 2019)"

ABSENT = "gisette, protein and real-sim were not available; of the rivals only KTA-Lbfgs is run"
NO_SIFT = "without SIFT descriptors and the paper's alignment: LBP of deep-funneled images"
MVU_SIZES = "under a time limit"

ITEMS = (
    Item(BILGO, "Fig. 1", "a feasible direction", None, "a drawing: nothing to measure"),
    Item(BILGO, "Fig. 2", "convergence on KTA, w1a and a1a", "bilgo_fig2"),
    Item(BILGO, "Table 1", "seconds of metric learners", "metric_tables", ABSENT),
    Item(BILGO, "Table 2", "their errors", "metric_tables", ABSENT),
    Item(BILGO, "Table 3", "MVU: objective and seconds", "bilgo_table3", MVU_SIZES),
    Item(BILGO, "Fig. 3", "MVU on w1a, along the way", "bilgo_table3", MVU_SIZES),
    Item(BILGO, "Fig. 4", "MVU on MNIST, along the way", "bilgo_table3", MVU_SIZES),
    Item(BILGO, "Table 4", "leading eigenvectors", "bilgo_table4"),
    Item(LRO, "Fig. 1", "the factorisation in one dimension", None, "a drawing"),
    Item(
        LRO,
        "Table 1",
        "top eigenvalues against eigs",
        "lro_table1",
        "PRIMME, if available, instead of JDQR; without rank √n and orthogonality",
    ),
    Item(LRO, "Table 2", "errors on UCI sets", "metric_tables", "rivals' software is not run"),
    Item(LRO, "Table 3", "the large sets", None, "a description: see the data sets"),
    Item(
        LRO,
        "Fig. 2",
        "seconds against dimension, gisette and real-sim",
        "lro_fig2",
        "neither set was available: instead features of MNIST, and news20; SURF is not run",
    ),
    Item(
        LRO,
        "Fig. 3",
        "error against rank, isolet and letter; seconds too",
        "lro_fig3",
        "news20 in place of real-sim; SURF is not run; the paper prints curves alone",
    ),
    Item(
        LRO,
        "Table 4",
        "KTA against SURF",
        "metric_tables",
        "SURF, a MATLAB code, is not run; gisette and real-sim were not available",
    ),
    Item(
        LRO,
        "Fig. 4",
        "ω along the iterations",
        "lro_fig4",
        "the paper prints curves alone",
    ),
    Item(LRO, "Fig. 5", "kernel learning by training set", "lro_fig5"),
    Item(
        LRO,
        "Table 5",
        "CG against L-BFGS",
        "lro_tables56",
        "without isolet; gisette and real-sim were not available",
    ),
    Item(LRO, "Table 6", "convergence from random starts", "lro_tables56"),
    Item(DML_EIG, "Tables 1, 2", "the algorithms", None, "algorithms: solver frank-wolfe"),
    Item(DML_EIG, "Table 3", "the data sets", None, "a description: see the data sets"),
    Item(DML_EIG, "Table 4", "errors", "dml_eig_tables45", "without Xing and BoostMetric"),
    Item(DML_EIG, "Table 5", "seconds", "dml_eig_tables45", "without Xing and BoostMetric"),
    Item(
        DML_EIG,
        "Fig. 1",
        "faces, by PCA dimension",
        "dml_eig_fig1",
        "without Xing and BoostMetric; the paper prints no figures",
    ),
    Item(DML_EIG, "Table 6", "LFW verification", "lfw_verification", f"{NO_SIFT}; without LDML"),
    Item(
        DML_EIG,
        "Table 7",
        "LFW, compared with other methods of that time",
        "lfw_verification",
        f"{NO_SIFT}; three descriptors of its four",
    ),
    Item(DML_EIG, "Fig. 2", "LFW by PCA dimension", "lfw_verification", f"{NO_SIFT}; without LDML"),
    Item(DML_EIG, "Fig. 3", "LFW ROC curves", "lfw_verification", f"{NO_SIFT}; ours alone"),
    Item(DML_EIG, "Appendix A", "MMMF (no results printed)", "mmmf_tables"),
    Item(
        SQLP,
        "Fig. 3.1",
        "the Swiss roll",
        "unfoldings",
        "the thesis draws the points alone; here 1000 such points are unfolded",
    ),
    Item(SQLP, "Table 3.1", "RegMVU on the Swiss roll", "sqlp_table31", "without rank(A)"),
    Item(SQLP, "Table 3.2", "RegPCP on USPS", "sqlp_table32", "without m = 35 and rank(A)"),
    Item(SQLP, "Fig. 3.2", "seconds against m, Swiss roll", "sqlp_table31"),
    Item(SQLP, "Fig. 3.3", "seconds against m, USPS", "sqlp_table32"),
    Item(BIS, "Table I", "the adult sets", "bis_tables123"),
    Item(BIS, "Fig. 1", "γ rules, on a1a and on the paper's a9a", "bis_gamma"),
    Item(BIS, "Table II", "Rand indices", "bis_tables123"),
    Item(BIS, "Table III", "seconds", "bis_tables123"),
    Item(BIS, "Fig. 2", "convergence on a9a", "bis_tables123"),
    Item(BIS, "Fig. 3", "MovieLens, along the way", "bis_tables456", "10M was not available"),
    Item(BIS, "Table IV", "the MovieLens sets", None, "a description; 10M was not available"),
    Item(
        BIS,
        "Table V",
        "RMSE",
        "bis_tables456",
        "10M was not available: movielens_10m is a synthetic set of its shape",
    ),
    Item(BIS, "Table VI", "seconds", "bis_tables456", "10M: see movielens_10m, synthetic"),
    Item(BIS, "Table VII", "ORL faces", "bis_table7"),
    Item(BIS, "Fig. 4", "ORL, along the way", "bis_table7"),
)
