"""The law of the records of a place given a release: exact, or by chains."""

from bayesrisk.inference.microdata.posterior import MicrodataPosterior, microdata_posterior
from bayesrisk.inference.microdata.prior import RecordPrior, fit_concentration
from bayesrisk.inference.microdata.questions import Question

__all__ = [
    "MicrodataPosterior",
    "Question",
    "RecordPrior",
    "fit_concentration",
    "microdata_posterior",
]
