"""What happens in a mesh, for purposes of one's own. Start at the README, or at `docs/observer/`."""

from weft_observer.happened import Happened
from weft_observer.observer import Observer
from weft_observer.outcomes import Later, Refused
from weft_observer.settings import ObserverSettings

__all__ = ["Happened", "Later", "Observer", "ObserverSettings", "Refused"]
