"""The former name of `spaql.files`."""

from spaql.files import FORMAT, VERSION, partition_arrays, read_partition  # noqa: F401
