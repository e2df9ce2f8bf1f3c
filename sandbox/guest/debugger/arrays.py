"""Arrays, tables and tensors in a line, by the library the program has loaded itself."""

from __future__ import annotations

import sys

_HEAD = 6


def summary(value, kind, library):
    """Shape, dtype and head of an array, table or tensor; None when it is none. Runs code of that library."""
    describe = {"numpy": _numpy, "pandas": _pandas, "torch": _torch}[library]
    return describe(value, kind, sys.modules[library])


def _numpy(value, kind, numpy):
    if not isinstance(value, numpy.ndarray):
        return None
    parts = ["shape=%s" % (value.shape,), "dtype=%s" % value.dtype]
    if value.size and value.dtype.kind in "biuf" and value.size <= 10**7:
        parts.append("min=%s max=%s" % (value.min(), value.max()))
        if value.dtype.kind == "f":
            missing = int(numpy.isnan(value).sum())
            if missing:
                parts.append("nan=%d" % missing)
    head = value.reshape(-1)[:_HEAD].tolist() if value.dtype.kind != "O" else []
    if head:
        parts.append("head=%r%s" % (head, "…" if value.size > _HEAD else ""))
    return "<ndarray %s>" % " ".join(parts)


def _pandas(value, kind, pandas):
    if isinstance(value, pandas.DataFrame):
        columns = ", ".join("%s: %s" % pair for pair in list(value.dtypes.items())[:12])
        missing = int(value.isna().sum().sum()) if value.size <= 10**6 else 0
        head = value.head(2).to_dict("records")
        nulls = " nulls=%d" % missing if missing else ""
        return "<DataFrame %d rows x %d columns (%s)%s head=%r>" % (value.shape + (columns, nulls, head))
    if isinstance(value, pandas.Series):
        head = value.head(_HEAD).tolist()
        missing = int(value.isna().sum()) if value.size <= 10**6 else 0
        nulls = " nulls=%d" % missing if missing else ""
        return "<Series %d of %s%s name=%r head=%r>" % (value.shape[0], value.dtype, nulls, value.name, head)
    return None


def _torch(value, kind, torch):
    if not isinstance(value, torch.Tensor):
        return None
    grad = " requires_grad" if value.requires_grad else ""
    head = value.detach().reshape(-1)[:_HEAD].tolist()
    more = "…" if value.numel() > _HEAD else ""
    return "<Tensor shape=%s dtype=%s device=%s%s head=%r%s>" % (
        tuple(value.shape),
        value.dtype,
        value.device,
        grad,
        head,
        more,
    )
