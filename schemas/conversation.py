"""Messages of a multi-turn attempt. Sampler and learner share this form.

Within a user turn the policy writes up to a bounded number of assistant messages. A message holds zero or more
calls in source form; their results come back as one tool message; a message without a call ends the turn.
"""

from dataclasses import dataclass
from enum import StrEnum


class Role(StrEnum):
    """Who speaks. TOOLS announces the tools on offer at the start of a turn."""

    SYSTEM = "system"
    TOOLS = "tools"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


@dataclass(frozen=True, slots=True)
class Message:
    """One message. content is text; an assistant message's calls are in `calls`, in source form."""

    role: Role
    content: str
    calls: tuple[str, ...] = ()
