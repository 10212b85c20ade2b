"""Word lists of the local search: data about English and about how people name tools, not about any tool set."""

from __future__ import annotations

STOP_WORDS = frozenset(
    """
    a about above after again all also am an and any are as at be been before being below between both but by can could
    did do does doing don down during each either few for from further had has have having he her here hers him his
    how however i if in into is it its itself just let like may me might more most must my need needs no nor not now of
    off on once one only onto or other our ours out over own please same shall she should so some such than that the
    their theirs them then there these they this those through to too under until up upon us use used using very via
    want wants was we were what when where which while who whom whose why will with within without would you your yours
    help tell know able try thanks thank hello hey hi ok okay etc e g ie eg tool tools function functions
    """.split()
)
"""Words that say nothing about a capability. In a query they count only where two of them make one word of a tool."""

VERBS = frozenset(
    """
    accept add append apply approve archive ask assign attach book build calculate call cancel change check clear clone
    close commit compare compute configure connect convert copy count create cut decode define delete deploy describe
    detect disable disconnect download draw drop duplicate edit enable encode end execute explain export extract fetch
    fill filter find fork format generate get grant handle import index insert install invite invoke join kill label
    launch leave link list load lock log login logout lookup make manage mark merge modify monitor move mute navigate
    notify open parse patch pause perform pin ping play post preview print process publish pull purge push put query
    read rebase receive record refresh register reject release reload remove rename render reopen replace reply report
    request reset resize resolve restart restore resume retrieve revert review revoke rotate run save scan schedule
    search select send set share show sign sort start stop store submit subscribe summarize sync tag take test toggle
    track transfer transform translate trigger type unlock unpin unsubscribe update upgrade upload use validate verify
    view wait watch write
    """.split()
)
"""Words that begin a tool's name as its action: a prefix made of one of them is no server."""

VAGUE_WORDS = frozenset(
    """
    all available current data detail details existing find give info information item items latest list look name new
    number provide thing things
    """.split()
)
"""Words that many tools share whatever they do: alone they are no reason to return a tool."""

SYNONYMS: tuple[tuple[str, ...], ...] = (
    ("create", "add", "new", "make", "insert", "open", "register", "raise", "draft", "compose", "propose"),
    ("delete", "remove", "drop", "destroy", "erase", "purge"),
    ("list", "get", "read", "fetch", "retrieve", "view", "show", "browse", "load"),
    ("update", "edit", "modify", "change", "set", "patch", "rename", "alter"),
    ("search", "find", "query", "lookup", "locate", "look"),
    ("send", "post", "publish", "submit", "write", "reply"),
    ("run", "execute", "start", "launch", "trigger", "invoke", "perform"),
    ("stop", "cancel", "kill", "abort", "terminate", "end"),
    ("disable", "mute", "silence", "pause", "suspend"),
    ("copy", "duplicate", "clone", "fork"),
    ("calculate", "compute", "evaluate"),
    ("convert", "transform", "translate"),
    ("check", "verify", "validate", "test"),
    ("schedule", "book", "reserve", "plan"),
    ("pr", "pull", "mr"),
    ("repository", "repo"),
    ("database", "db"),
    ("directory", "folder", "dir"),
    ("document", "doc", "docs"),
    ("message", "msg", "chat"),
    ("email", "mail"),
    ("picture", "image", "photo", "img"),
    ("kubernetes", "k8s"),
    ("javascript", "js"),
    ("configuration", "config", "settings", "setting"),
    ("information", "info", "details", "detail"),
    ("authentication", "auth", "login"),
    ("identifier", "id"),
    ("parameter", "param"),
    ("environment", "env"),
    ("application", "app"),
    ("organization", "org"),
    ("ticket", "issue", "bug"),
    ("task", "todo"),
    ("event", "meeting", "appointment"),
    ("command", "shell", "terminal"),
    ("web", "internet", "online"),
    ("url", "link"),
    ("user", "member", "account"),
)
"""Words that people and tool authors use for one another. A synonym counts for less than the word itself."""

OPPOSITES: tuple[tuple[str, str], ...] = tuple(
    (pair.split("/")[0], pair.split("/")[1])
    for pair in """
    start/stop start/end start/finish run/stop begin/end begin/stop launch/stop create/delete create/remove
    create/destroy add/delete add/remove insert/delete insert/remove make/delete new/delete open/close
    enable/disable activate/deactivate lock/unlock mute/unmute pin/unpin follow/unfollow subscribe/unsubscribe
    archive/restore archive/unarchive star/unstar connect/disconnect attach/detach mount/unmount link/unlink
    assign/unassign block/unblock ban/unban hide/show import/export upload/download push/pull send/receive
    read/write get/set get/delete list/delete list/create get/create login/logout accept/reject accept/decline
    approve/reject allow/deny grant/revoke encode/decode encrypt/decrypt compress/decompress increase/decrease
    raise/lower buy/sell purchase/sell deposit/withdraw borrow/lend join/leave resume/pause play/pause play/stop
    expand/collapse merge/split first/last next/previous newest/oldest up/down left/right before/after
    public/private input/output source/target inbound/outbound ascending/descending install/uninstall
    register/unregister deploy/destroy copy/move undo/redo save/discard include/exclude success/failure pass/fail
    """.split()
)
"""Words that stand near each other in every text and mean the contrary: one never stands for the other."""
