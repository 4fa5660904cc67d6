"""Headlines of benchmarks that no table of a paper asks for."""

from benchmarks._headlines.base import Headline, line
from benchmarks._headlines.shared import unfolding

MNIST_LEARNERS = ("LMNN", "ITML_Supervised", "NCA", "LSML_Supervised", "scikit-learn NCA")


def _clusters(model: str, links: int) -> Headline:
    column, rivals = f"{links} links", ("k-means", "spectral clustering", "COP-k-means")
    caption, what = (
        "usps: accuracy % by the number of links",
        f"accuracy %, usps, {column}: {model}",
    )
    return line(what, caption, {"method": model}, column, rivals, better="more")


HEADLINES: dict[str, tuple[Headline, ...]] = {
    "constrained_clustering": (
        _clusters("PCP", 50), _clusters("PCP", 2000), _clusters("RegPCP", 200),
    ),
    "convergence": (
        line("seconds to 1e-6 of F*, tr((AM)² + BM² + 2CM), order 100", "First to a relative",
             {"problem": "quadratic"}, "auto s", {"the first solver there": "|s"}),
    ),
    "kernel_metric": tuple(
        line(f"error of 3-NN, {on}, %: DMLEig with a Gaussian", "Real sets", {"set": on},
             "DMLEig, rbf", ("|Euclid",))
        for on in ("mean of the sets", "pima")
    ),
    "kta_large": (
        line("error of 3-NN on MNIST, 10,000 reference images, %: KTA", "MNIST: 3-NN test error",
             {"metric": "KTA, λ = auto"}, "error %", ("Euclid",), paper="|"),
    ),
    "lmnn_mnist": tuple(
        line(f"{what}, all of MNIST: LMNN", "Error of 3-NN and seconds", {"method": "LMNN, ours"},
             column, MNIST_LEARNERS)
        for what, column in (("error of 3-NN, %", "error %"), ("seconds of a fit", "seconds"))
    ),
    "mu_auto": (
        line("error of 3-NN on sonar, %: DMLEig", "DMLEig: (μ", {"set": "sonar"}, "auto",
             ("|Euclid",)),
    ),
    "mvu_exact": (
        line("seconds, Swiss roll, n = 40, edges to 1e-4: MVU", "Variance and edges",
             {"set": "Swiss roll", "n": 40, "method": "MVU, max_edge_error=0.0001"}, "seconds",
             ("Clarabel",)),
    ),
    "mvu_mnist": (
        line("accuracy of 1-NN in 10 dimensions, n = 60,000, %: MVU",
             "1-NN of held-out digits", {"n": 60000}, "MVU, 10", ("|PCA, 10", "|pixels"),
             better="more"),
    ),
    "layouts": tuple(
        line(f"trustworthiness in the plane, {on}: NeighborLayout", f"{on}:",
             {"method": "NeighborLayout"}, "trustworthiness", ("Isomap, 8 neighbours", "UMAP"),
             better="more")
        for on in ("digits", "MNIST", "ORL faces")
    ),
    "unfoldings": (
        unfolding("correlation with the parameters, S-curve: MVU", "lesser R, S-curve"),
        unfolding("correlation with the parameters, roll with a hole: MVU",
                  "lesser R, roll with a hole"),
        unfolding("neighbourhoods kept, MNIST: MVU", "kept, MNIST, digit 2"),
        unfolding("neighbourhoods kept, ORL faces: MVU", "kept, ORL faces"),
    ),
}  # fmt: skip
"""By benchmark."""
