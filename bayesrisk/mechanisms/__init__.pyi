"""Public names of the mechanisms."""

from .base import BaseMechanism as BaseMechanism, Protected as Protected
from .bottom_up import BottomUp as BottomUp
from .coarsening import Identity as Identity, Rounding as Rounding
from .registry import (
    available_mechanisms as available_mechanisms,
    make_mechanism as make_mechanism,
    register_mechanism as register_mechanism,
)
from .suppression.mechanism import (
    Suppression as Suppression,
    audit_suppression as audit_suppression,
)
from .swapping.mechanism import Swapping as Swapping
from .topdown.mechanism import TopDown as TopDown
