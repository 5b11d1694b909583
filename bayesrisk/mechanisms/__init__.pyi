"""Public names of the mechanisms."""

from .bottom_up import BottomUp as BottomUp
from .bottom_up import PreparedBottomUp as PreparedBottomUp
from .identity import Identity as Identity
from .noise import DiscreteGaussianMechanism as DiscreteGaussianMechanism
from .noise import DiscreteLaplaceMechanism as DiscreteLaplaceMechanism
from .registry import available_mechanisms as available_mechanisms
from .registry import make_mechanism as make_mechanism
from .registry import register_mechanism as register_mechanism
from .rounding import Rounding as Rounding
from .suppression import Suppression as Suppression
from .suppression_audit import ProtectionRanges as ProtectionRanges
from .suppression_audit import audit_suppression as audit_suppression
from .swapping import SwappedMicrodata as SwappedMicrodata
from .swapping import Swapping as Swapping
from .topdown import TopDown as TopDown
from .topdown_prepared import PreparedTopDown as PreparedTopDown
