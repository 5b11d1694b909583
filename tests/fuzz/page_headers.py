"""Pages of a Parquet file that say something else of themselves."""


def whole(value):
    """Return a whole number as the compact protocol writes it."""
    value, text = (value << 1) ^ (value >> 63), b""
    while value > 127:
        text, value = text + bytes([value & 127 | 128]), value >> 7
    return text + bytes([value])


def lie(data, at, number, value):
    """Return a file whose page at a place says another number: of text, stored, or of values.

    A header is the kind of the page, its two lengths, and a struct that begins with how many
    values there are; before a number is a byte that says which field it is.
    """
    for _ in range(number):
        at += 1
        while data[at] > 127:
            at += 1
        at += 1
    if number == 3:
        at += 1
    end = at + 1
    while data[end] > 127:
        end += 1
    return data[: at + 1] + whole(value) + data[end + 1 :]
