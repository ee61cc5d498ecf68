"""Eigenfunctions and eigenfields of the Laplacians, orthonormal under the uniform probability measure."""

from rdgp.spectra._harmonics import harmonics
from rdgp.spectra._product import ProductSpectrum
from rdgp.spectra._product_hodge import ProductHodgeSpectrum
from rdgp.spectra._quadrature import quadrature
from rdgp.spectra._spectrum import (
    HodgePart,
    HodgeSpectrum,
    ScalarSpectrum,
    ambient_spectra,
    hodge_parts,
    hodge_spectrum,
    provides,
    scalar_spectrum,
)
from rdgp.spectra._sphere import SphereSpectrum
from rdgp.spectra._sphere_hodge import SphereHodgeSpectrum
from rdgp.spectra._sums import sum_all_harmonics
from rdgp.spectra._torus import TorusHodgeSpectrum, TorusSpectrum

__all__ = [
    "HodgePart",
    "HodgeSpectrum",
    "ProductHodgeSpectrum",
    "ProductSpectrum",
    "ScalarSpectrum",
    "SphereHodgeSpectrum",
    "SphereSpectrum",
    "TorusHodgeSpectrum",
    "TorusSpectrum",
    "ambient_spectra",
    "harmonics",
    "hodge_parts",
    "hodge_spectrum",
    "provides",
    "quadrature",
    "scalar_spectrum",
    "sum_all_harmonics",
]
