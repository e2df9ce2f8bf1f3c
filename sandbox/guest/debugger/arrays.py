"""Arrays, tables and tensors in a line and as a level to page through, by the library the program has loaded itself."""

from __future__ import annotations

import sys
import zlib

_HEAD = 6
_ROWS = 2
_COLUMNS = 12
_COUNTED = 10**6  # elements up to which something is computed about all of them
_COMPARED = 1 << 16  # bytes that tell whether an array was changed in place


def library(kind):
    """The library whose arrays (tables, tensors) a class is one of, when the program has loaded it: "numpy", "pandas", "torch".

    None for other classes. Asks the class, not the object: what says that it is an array may be none.
    """
    module = kind.__module__
    name = module.partition(".")[0] if type(module) is str else ""
    if name not in _SUMMARIES or name not in sys.modules:
        return None
    bases = (getattr(sys.modules[name], base, None) for base in _CLASSES[name])
    return name if any(base in kind.__mro__ for base in bases) else None


def summary(value, kind, show):
    """Shape, dtype and head of an array, table or tensor; None when it is none. Runs code of that library.

    `show` makes the text of one element: those may be anything.
    """
    name = library(kind)
    return None if name is None else _SUMMARIES[name](value, kind, sys.modules[name], show)


def _numpy(value, kind, numpy, show):
    parts = ["shape=%s" % (value.shape,), "dtype=%s" % value.dtype]
    if value.dtype.kind in "biuf" and 0 < value.size <= _COUNTED:
        parts += _range(value, numpy)
    flat = value.reshape(-1)[:_HEAD].tolist() if kind.__name__ != "matrix" else value.A1[:_HEAD].tolist()
    if flat:
        parts.append("head=%s%s" % (_list(flat, show), "…" if value.size > _HEAD else ""))
    return "<%s %s>" % (kind.__name__, " ".join(parts))


def _range(value, numpy):
    missing = int(numpy.isnan(value).sum()) if value.dtype.kind == "f" else 0
    if missing == value.size:
        return ["nan=%d" % missing]
    if missing:
        return ["min=%s max=%s nan=%d" % (numpy.nanmin(value), numpy.nanmax(value), missing)]
    return ["min=%s max=%s" % (value.min(), value.max())]


def _list(items, show):
    return "[%s]" % ", ".join(show(item) for item in items)


def _pandas(value, kind, pandas, show):
    if issubclass(kind, pandas.DataFrame):
        return _table(value, show)
    if issubclass(kind, pandas.Series):
        nulls = _nulls(value.isna().sum() if value.size <= _COUNTED else 0)
        head = _list(value.head(_HEAD).tolist(), show)
        more = "…" if value.size > _HEAD else ""
        name = "" if value.name is None else " name=%s" % show(value.name)
        return "<Series of %d %s%s%s head=%s%s>" % (value.shape[0], value.dtype, name, nulls, head, more)
    return None


def _table(value, show):
    rows, columns = value.shape
    # Not by `value[name]`: there may be two columns of a name.
    names = [
        "%s: %s" % (show(name), dtype)
        for name, dtype in zip(list(value.columns[:_COLUMNS]), list(value.dtypes.iloc[:_COLUMNS]))
    ]
    if columns > _COLUMNS:
        names.append("…")
    nulls = _nulls(value.isna().sum().sum() if value.size <= _COUNTED else 0)
    head = value.iloc[:_ROWS, :_COLUMNS].itertuples(index=False, name=None)
    text = ", ".join("(%s)" % ", ".join(show(cell) for cell in row) for row in head)
    more = ", …" if rows > _ROWS else ""
    return "<DataFrame %d rows x %d columns [%s]%s head=[%s%s]>" % (
        rows,
        columns,
        ", ".join(names),
        nulls,
        text,
        more,
    )


def _nulls(count):
    return " nulls=%d" % count if count else ""


def _torch(value, kind, torch, show):
    grad = " requires_grad" if value.requires_grad else ""
    head = value.detach().reshape(-1)[:_HEAD].tolist()
    more = "…" if value.numel() > _HEAD else ""
    return "<%s shape=%s dtype=%s device=%s%s head=%s%s>" % (
        kind.__name__,
        tuple(value.shape),
        value.dtype,
        value.device,
        grad,
        _list(head, show),
        more,
    )


_CLASSES = {"numpy": ("ndarray",), "pandas": ("DataFrame", "Series"), "torch": ("Tensor",)}
_SUMMARIES = {"numpy": _numpy, "pandas": _pandas, "torch": _torch}


def mark(value, kind):
    """Something that differs when the elements do (of large ones: some of them), or None."""
    name = library(kind)
    if name == "numpy":
        return value.shape, _sum(value)
    if name == "pandas" and kind.__name__ == "Series":
        return value.shape, _sum(value.to_numpy())
    if name == "pandas" and kind.__name__ == "DataFrame":
        columns = range(min(value.shape[1], 8))
        return value.shape, tuple(_sum(value.iloc[:, number].to_numpy()) for number in columns)
    return None


def _sum(array):
    if array.dtype.hasobject or not array.size:
        return 0
    flat = array.reshape(-1)
    if array.nbytes > _COMPARED:
        flat = flat[:: array.nbytes // _COMPARED + 1]
    return zlib.crc32(flat.tobytes())


def pairs(value, kind, start, stop, show):
    """(how many there are, [(name, value)] of the page): rows of an array, columns of a table; None for others."""
    name = library(kind)
    if name == "numpy" and value.ndim:
        return int(value.shape[0]), [("[%d]" % (start + i), item) for i, item in enumerate(value[start:stop])]
    if name == "pandas" and kind.__name__ == "DataFrame":
        wanted = range(start, min(stop, value.shape[1]))
        return int(value.shape[1]), [("[%s]" % show(value.columns[i]), value.iloc[:, i]) for i in wanted]
    if name == "pandas" and kind.__name__ == "Series":
        wanted = range(start, min(stop, value.shape[0]))
        return int(value.shape[0]), [("[%s]" % show(value.index[i]), value.iloc[i]) for i in wanted]
    if name == "torch" and value.dim():
        return int(value.shape[0]), [("[%d]" % (start + i), item) for i, item in enumerate(value[start:stop])]
    return None


def length(value, kind):
    """The first dimension, or None."""
    if library(kind) is None:
        return None
    try:
        shape = value.shape
        return int(shape[0]) if shape else None
    except Exception:  # code of a library, or of something that calls itself so
        return None
