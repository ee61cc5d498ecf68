"""The laws of the library's contracts, to be run on objects of your own.

`check_space`, `check_spectrum`, `check_field` and `check_likelihood` run all laws on an object, in the precision that
JAX is set to, and raise an AssertionError of one line that names the law that is broken and the number found.
"""

from rdgp.testing._fields import check_field
from rdgp.testing._likelihoods import check_likelihood
from rdgp.testing._spaces import check_space
from rdgp.testing._spectra import check_spectrum

__all__ = ["check_field", "check_likelihood", "check_space", "check_spectrum"]
