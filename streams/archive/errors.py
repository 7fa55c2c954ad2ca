"""Errors of the archive. Each message is one sentence."""


class ArchiveError(Exception):
    """The archive on disk, or what is to be added to it, is not what its manifest says."""


class ArchiveConflictError(ArchiveError):
    """Another archiver has sealed in the meantime; read the manifest again before going on."""
