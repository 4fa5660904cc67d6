"""Headlines of questions that no paper's table asks."""

from benchmarks._headlines.base import Cell, Headline, across, down
from benchmarks._headlines.shared import unfolding


def _clusters(model: str, links: int) -> Headline:
    caption, column = "usps: accuracy % by the number of links", f"{links} links"
    return Headline(
        f"accuracy %, usps, {column}: {model}",
        ours=Cell(caption, {"method": model}, column),
        peers=down(caption, "method", ("k-means", "spectral clustering", "COP-k-means"), column),
        better="more",
    )


HEADLINES: dict[str, tuple[Headline, ...]] = {
    "constrained_clustering": (
        _clusters("PCP", 50),
        _clusters("PCP", 2000),
        _clusters("RegPCP", 200),
    ),
    "convergence": (
        Headline(
            "seconds to 1e-6 of F*, tr((AM)² + BM² + 2CM), order 100",
            ours=Cell("First to a relative", {"problem": "quadratic"}, "auto s"),
            peers={
                "the first solver there": Cell("First to a relative", {"problem": "quadratic"}, "s")
            },
            better="less",
        ),
    ),
    "kernel_metric": tuple(
        Headline(
            f"error of 3-NN, {on}, %: DMLEig with a Gaussian",
            ours=Cell("Real sets", {"set": on}, "DMLEig, rbf"),
            peers=across("Real sets", {"set": on}, "Euclid"),
            better="less",
        )
        for on in ("mean of the sets", "pima")
    ),
    "kta_large": (
        Headline(
            "error of 3-NN on MNIST, 10,000 reference images, %: KTA",
            ours=Cell("MNIST: 3-NN test error", {"metric": "KTA, λ = auto"}, "error %"),
            paper=Cell("MNIST: 3-NN test error", {"metric": "KTA, λ = auto"}, "error %", "paper"),
            peers=down("MNIST: 3-NN test error", "metric", ("Euclid",), "error %"),
            better="less",
        ),
    ),
    "lmnn_mnist": tuple(
        Headline(
            f"{what}, all of MNIST: LMNN",
            ours=Cell("Error of 3-NN and seconds", {"method": "LMNN, ours"}, column),
            peers=down(
                "Error of 3-NN and seconds",
                "method",
                ("LMNN", "ITML_Supervised", "NCA", "LSML_Supervised", "scikit-learn NCA"),
                column,
            ),
            better="less",
        )
        for what, column in (("error of 3-NN, %", "error %"), ("seconds of a fit", "seconds"))
    ),
    "mu_auto": (
        Headline(
            "error of 3-NN on sonar, %: DMLEig",
            ours=Cell("DMLEig: (μ", {"set": "sonar"}, "auto"),
            peers=across("DMLEig: (μ", {"set": "sonar"}, "Euclid"),
            better="less",
        ),
    ),
    "mvu_exact": (
        Headline(
            "seconds, Swiss roll, n = 40, edges to 1e-4: MVU",
            ours=Cell(
                "Variance and edges",
                {"set": "Swiss roll", "n": 40, "method": "MVU, max_edge_error=0.0001"},
                "seconds",
            ),
            peers=down(
                "Variance and edges", "method", ("Clarabel",), "seconds", set="Swiss roll", n=40
            ),
            better="less",
        ),
    ),
    "mvu_mnist": (
        Headline(
            "accuracy of 1-NN in 10 dimensions, n = 60,000, %: MVU",
            ours=Cell("1-NN of held-out digits", {"n": 60000}, "MVU, 10"),
            peers=across("1-NN of held-out digits", {"n": 60000}, "PCA, 10", "pixels"),
            better="more",
        ),
    ),
    "layouts": tuple(
        Headline(
            f"trustworthiness in the plane, {on}: NeighborLayout",
            ours=Cell(f"{on}:", {"method": "NeighborLayout"}, "trustworthiness"),
            peers=down(f"{on}:", "method", ("Isomap, 8 neighbours", "UMAP"), "trustworthiness"),
            better="more",
        )
        for on in ("digits", "MNIST", "ORL faces")
    ),
    "unfoldings": (
        unfolding("correlation with the parameters, S-curve: MVU", "lesser R, S-curve"),
        unfolding(
            "correlation with the parameters, roll with a hole: MVU", "lesser R, roll with a hole"
        ),
        unfolding("neighbourhoods kept, MNIST: MVU", "kept, MNIST, digit 2"),
        unfolding("neighbourhoods kept, ORL faces: MVU", "kept, ORL faces"),
    ),
}
"""By the benchmark."""
