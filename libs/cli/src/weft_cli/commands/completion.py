"""`weft completion`: the few lines by which a shell asks the command line itself what can stand next.

All three speak typer's protocol for bash, which is values alone: descriptions would cost 0.2 s a TAB. They call the
very word that was typed, so that `./weft` is completed too.
"""

from weft_client.failure import Exit, Failure

SCRIPTS = {
    "bash": """\
_weft_completion() {
    local IFS=$'\\n'
    COMPREPLY=($(COMP_WORDS="${COMP_WORDS[*]}" COMP_CWORD=$COMP_CWORD _WEFT_COMPLETE=complete_bash "$1" 2>/dev/null))
}
complete -o default -F _weft_completion weft
""",
    "zsh": """\
#compdef weft
_weft_completion() {
    local -a found
    found=("${(@f)$(COMP_WORDS="${words[*]}" COMP_CWORD=$((CURRENT - 1)) \\
        _WEFT_COMPLETE=complete_bash "${words[1]}" 2>/dev/null)}")
    if [[ -n "${found[*]}" ]]; then
        compadd -- "${found[@]}"
    else
        _files
    fi
}
compdef _weft_completion weft
""",
    "fish": """\
function _weft_completion
    set -l before (commandline -opc)
    set -lx COMP_WORDS (string join ' ' -- $before (commandline -ct))
    set -lx COMP_CWORD (count $before)
    set -lx _WEFT_COMPLETE complete_bash
    set -l found ($before[1] 2>/dev/null | string match --regex '.+')
    if test (count $found) -gt 0
        string join \\n -- $found
    else
        __fish_complete_path (commandline -ct)
    end
end
complete --command weft --no-files --arguments '(_weft_completion)'
""",
}


def run(shell: str) -> None:
    """Print a shell's lines."""
    script = SCRIPTS.get(shell)
    if script is None:
        raise Failure(f"there is no completion for {shell}; there is one for {', '.join(SCRIPTS)}", Exit.USAGE)
    print(script, end="")
