"""The former name of `spaql.files`."""

from spaql.files import check_array, checksum, read, sweep, write  # noqa: F401
