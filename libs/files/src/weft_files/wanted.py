"""What is to be fetched: one file by its name, with what is known of its content."""

from dataclasses import dataclass

from weft_files.checksum import Checksum
from weft_files.names import check_file_name


@dataclass(frozen=True, slots=True)
class Wanted:
    """Sizes are bytes. Raises BadName and ValueError for what no file can be."""

    name: str
    size: int | None
    """Exactly so many; None: nobody said."""
    checksum: Checksum | None
    cap: int
    """No more than these in any case."""

    def __post_init__(self) -> None:
        check_file_name(self.name)
        if self.cap < 0 or (self.size is not None and self.size < 0):
            raise ValueError(f"{self.name} can't have {self.size} bytes of at most {self.cap}: want 0 or more")

    @property
    def tells_content(self) -> bool:
        """Whether what came from two addresses may be joined: the checksum would find what doesn't fit."""
        return self.checksum is not None and self.checksum.tells_content
