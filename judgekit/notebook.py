"""Objects in notebooks: they show words and a figure at once, and all figures on demand."""

from __future__ import annotations

from typing import Any


class NotebookRepr:
    """Shows itself in a notebook, through the report, which these modules cannot import."""

    __slots__ = ()

    def plot(self, name: str | None = None, *, coefficient: str | None = None, run: str | None = None) -> Any:
        """Return the figures of this, or the one of a name; each has ``data``, ``alt`` and ``save("x.svg")``.

        Args:
            name: of the figure.
            coefficient: of the figures of a comparison: ``concordance`` (the default), ``tau_b``, ``rho`` or ``r``.
            run: the retriever that the figures of a comparison are about; None for the mean over all of them.

        Raises:
            UsageError: no figure, coefficient or run has that name.
        """
        import judgekit

        told = {"coefficient": coefficient, "run": run}
        found = judgekit.figures(self, **{key: value for key, value in told.items() if value is not None})
        return found if name is None else found.named(name)

    def _repr_html_(self) -> str:
        import judgekit

        found = judgekit.figures(self)
        return str(found.summary) + "".join(one._repr_html_() for one in found[:1])
