"""Public names of the mechanisms."""

from .base import BaseMechanism as BaseMechanism
from .base import Protected as Protected
from .bottom_up import BottomUp as BottomUp
from .coarsening import Identity as Identity
from .coarsening import Rounding as Rounding
from .registry import available_mechanisms as available_mechanisms
from .registry import make_mechanism as make_mechanism
from .registry import register_mechanism as register_mechanism
from .suppression.mechanism import Suppression as Suppression
from .suppression.mechanism import audit_suppression as audit_suppression
from .swapping.mechanism import Swapping as Swapping
from .topdown.mechanism import TopDown as TopDown
