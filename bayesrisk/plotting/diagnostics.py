"""How chains of draws look: ArviZ's own plots of :class:`~bayesrisk.Samples`."""

from collections.abc import Hashable, Sequence

from bayesrisk.inference.sampling import arviz_io
from bayesrisk.inference.sampling.chains import Samples
from bayesrisk.plotting._canvas import Figure, outside_pyplot

__all__ = ["plot_autocorr", "plot_posterior", "plot_rank", "plot_trace"]

_MOST = 12  # variables in one figure that can still be read


def _plot(kind: str, samples: Samples, labels: Sequence[Hashable] | None) -> Figure:
    with outside_pyplot():
        figure: Figure = arviz_io.figure(kind, samples, labels, _MOST)
        figure.set_layout_engine("constrained")  # room for titles of two lines
    return figure


def plot_posterior(samples: Samples, *, labels: Sequence[Hashable] | None = None) -> Figure:
    """Draw the posterior of the target and of each count, as ArviZ shows it.

    Parameters
    ----------
    samples : Samples
        Draws of one of the samplers.
    labels : sequence, optional
        Which levels or nodes, or ``target``: at most 12; None for all of them.

    Returns
    -------
    matplotlib.figure.Figure
        A panel for each variable; not known to pyplot.

    Raises
    ------
    ArgumentError
        If a label is unknown, or there are too many to plot.
    """
    return _plot("posterior", samples, labels)


def plot_trace(samples: Samples, *, labels: Sequence[Hashable] | None = None) -> Figure:
    """Draw the value of each variable along each chain: it should look like noise.

    Parameters
    ----------
    samples : Samples
        Draws of one of the samplers.
    labels : sequence, optional
        Which levels or nodes, or ``target``: at most 12; None for all of them.

    Returns
    -------
    matplotlib.figure.Figure
        A row for each variable; not known to pyplot.

    Raises
    ------
    ArgumentError
        If a label is unknown, or there are too many to plot.
    """
    return _plot("trace", samples, labels)


def plot_rank(samples: Samples, *, labels: Sequence[Hashable] | None = None) -> Figure:
    """Draw how the ranks of the draws spread over the chains: evenly, if the chains agree.

    Equal counts are ranked at random, so that ties favour no chain.

    Parameters
    ----------
    samples : Samples
        Draws of one of the samplers.
    labels : sequence, optional
        Which levels or nodes, or ``target``: at most 12; None for all of them.

    Returns
    -------
    matplotlib.figure.Figure
        A panel for each variable; not known to pyplot.

    Raises
    ------
    ArgumentError
        If a label is unknown, or there are too many to plot.
    """
    return _plot("rank", samples, labels)


def plot_autocorr(samples: Samples, *, labels: Sequence[Hashable] | None = None) -> Figure:
    """Draw how far along a chain a draw still shows: short bars are good.

    Parameters
    ----------
    samples : Samples
        Draws of one of the samplers.
    labels : sequence, optional
        Which levels or nodes, or ``target``: at most 12; None for all of them.

    Returns
    -------
    matplotlib.figure.Figure
        A panel for each variable (and chain, on ArviZ 0.x); not known to pyplot.

    Raises
    ------
    ArgumentError
        If a label is unknown, or there are too many to plot.
    """
    return _plot("autocorr", samples, labels)
