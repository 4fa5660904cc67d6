"""Leading eigenpairs, and kernels approximated by them."""

from gramian.spectral.eigenpairs import TopEigen, top_eigen
from gramian.spectral.low_rank_kernel import LowRankKernel

__all__ = ["LowRankKernel", "TopEigen", "top_eigen"]
