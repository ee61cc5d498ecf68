"""Manifolds: points and tangent vectors are ambient arrays [..., D]; angles exist only in the lat/lon functions."""

from rdgp.spaces._euclidean import Box, Euclidean, Flat
from rdgp.spaces._latlon import latlon_to_sphere, sphere_to_latlon, tangent_to_wind, wind_to_tangent
from rdgp.spaces._maps import Isometry, Readable, UnitScaling
from rdgp.spaces._product import Product
from rdgp.spaces._quaternions import quaternion_product
from rdgp.spaces._rotations import Rotations
from rdgp.spaces._space import Space
from rdgp.spaces._sphere import Circle, Sphere, east_north_frame
from rdgp.spaces._torus import Torus

__all__ = [
    "Box",
    "Circle",
    "Euclidean",
    "Flat",
    "Isometry",
    "Product",
    "Readable",
    "Rotations",
    "Space",
    "Sphere",
    "Torus",
    "UnitScaling",
    "east_north_frame",
    "latlon_to_sphere",
    "quaternion_product",
    "sphere_to_latlon",
    "tangent_to_wind",
    "wind_to_tangent",
]
