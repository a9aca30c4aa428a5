"""The conversation at a terminal: ask, show, remember, until the person has had enough."""

from dataclasses import replace

from weft_client.failure import Failure
from weft_client.gateway import Gateway, Refused

from weft_cli.chat.answer_stream import answer
from weft_cli.chat.chat_models import TOY, ChatModel, chat_models, to_ask
from weft_cli.chat.conversation import COMMANDS, Command, Conversation, NoCommand, meant
from weft_cli.chat.terminal import Terminal
from weft_cli.render import table

PROMPT = "> "


class Session:
    """One sitting."""

    def __init__(self, gateway: Gateway, terminal: Terminal, conversation: Conversation) -> None:
        self._gateway = gateway
        self._terminal = terminal
        self.conversation = conversation

    def run(self, wanted: str | None) -> None:
        """Talk until /quit or Ctrl-D. Raises Failure if there is nobody to talk to."""
        models = chat_models(self._gateway)
        chosen = to_ask(models, wanted) or self._picked(models)
        if chosen is None:
            return
        self._terminal.note(f"Talking to {chosen.name} at {self._gateway.url}. /help says what else can be typed.")
        self._speak_to(chosen)
        while self._once():
            pass

    def _once(self) -> bool:
        """One line and what it brings; False at the end."""
        try:
            line = self._terminal.ask(PROMPT)
        except KeyboardInterrupt:
            self._terminal.note("\n(Ctrl-D or /quit ends)")
            return True
        if line is None:
            return False
        try:
            match meant(line):
                case None:
                    pass
                case NoCommand(sentence):
                    self._terminal.complain(sentence)
                case Command(word="quit"):
                    return False
                case Command() as command:
                    self._obey(command)
                case text:
                    self._answer(text)
        except KeyboardInterrupt:
            self._terminal.note("\n(cancelled)")
        except Failure as e:
            self._terminal.complain(str(e))
        return True

    def _answer(self, text: str) -> None:
        """Ask and show. What was shown is what is remembered, of a cancelled or broken answer too."""
        asked = self.conversation = self.conversation.asked(text)
        said: list[str] = []
        pieces = answer(self._gateway, asked.body())
        try:
            for piece in pieces:
                said.append(piece)
                self._terminal.show(piece)
            self._terminal.show("\n")
        except Refused as e:
            if e.status == 400 and len(asked.turns) > 1:
                raise Failure(f"{e} (/clear forgets what was said before)") from e
            raise
        except Failure:
            if said:
                self._terminal.show("\n")
            raise
        finally:
            pieces.close()
            self.conversation = asked.answered("".join(said))

    def _obey(self, command: Command) -> None:
        match command.word:
            case "help":
                for line in COMMANDS.values():
                    self._terminal.note(line)
            case "clear":
                self.conversation = replace(self.conversation, turns=())
                self._terminal.note("(forgotten)")
            case "system":
                self._system(command.rest)
            case "model":
                self._model(command.rest)
            case "quit":
                pass

    def _system(self, text: str) -> None:
        if text:
            self.conversation = replace(self.conversation, system=None if text == "none" else text)
        self._terminal.note(f"(system: {self.conversation.system or 'none'})")

    def _model(self, name: str) -> None:
        models = chat_models(self._gateway)
        if name:
            chosen = next((each for each in models if each.name == name), None)
            if chosen is None:
                raise Failure(f"there is no model {name}; there are {', '.join(each.name for each in models)}")
        else:
            chosen = self._picked(models)
        if chosen is not None:
            self._terminal.note(f"(talking to {chosen.name})")
            self._speak_to(chosen)

    def _picked(self, models: list[ChatModel]) -> ChatModel | None:
        """The one that the person chooses, by number or by name; None if they would rather not."""
        table(
            ("", "model", ""), [(number, each.name, each.about or each.state) for number, each in enumerate(models, 1)]
        )
        first = next((number for number, each in enumerate(models, 1) if each.serves), 1)
        while True:
            line = self._terminal.ask(f"which? [{first}] ")
            if line is None:
                return None
            typed = line.strip() or str(first)
            for number, each in enumerate(models, 1):
                if typed in (str(number), each.name):
                    return each
            self._terminal.complain(f"{typed} is none of them: a number from 1 to {len(models)}, or a name")

    def _speak_to(self, chosen: ChatModel) -> None:
        self.conversation = replace(self.conversation, model=chosen.name)
        if chosen.builtin:
            self._terminal.note(f"{chosen.name} is {TOY}.")
        elif not chosen.serves:
            self._terminal.note(f"({chosen.name} is {chosen.about})")
