"""Kernel learning from must-link and cannot-link pairs or labels, and clustering."""

from gramian.kernel.auto_kernel import AutoKernel
from gramian.kernel.inductive_kernel import InductiveKernel
from gramian.kernel.kernel_kmeans import KernelKMeans
from gramian.kernel.npkl import NPKL
from gramian.kernel.pcp import PCP
from gramian.kernel.reg_pcp import RegPCP

__all__ = ["NPKL", "PCP", "AutoKernel", "InductiveKernel", "KernelKMeans", "RegPCP"]
