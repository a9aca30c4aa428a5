"""An engine of one's own, made of functions: Weft brings the rest. See `libs/engine/examples`."""

from weft_engine.functions.abilities import Functions
from weft_engine.functions.adapter import FunctionAdapter
from weft_engine.functions.question import Cancelled, Question, Said

__all__ = ["Cancelled", "FunctionAdapter", "Functions", "Question", "Said"]
