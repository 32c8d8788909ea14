"""What may be wrong with a stored record."""


class Stale(Exception):
    """A stored record has numbers of another version than this code computes."""


class Damaged(Exception):
    """A stored record is not what was written."""


class DamagedPack(Damaged):
    """A Parquet file of stored records is not what was written."""
