"""Which kernels a space takes in closed form."""

from functools import singledispatch

from rdgp.kernels._closed_form import ClosedFormKernel
from rdgp.kernels._kernel import Kernel
from rdgp.spaces import Flat, Space


@singledispatch
def closed_form(space: Space, kernel: Kernel) -> ClosedFormKernel:
    """Return a kernel's closed form on a space; register it for a space of your own that has one."""
    raise ValueError(
        f"{space} has no discrete spectrum and no kernel in closed form; on a product pass a tuple with one kernel for "
        "each factor, elsewhere register closed_form"
    )


@closed_form.register
def _(space: Flat, kernel: Kernel) -> ClosedFormKernel:
    return kernel.on_flat(space.dim)
