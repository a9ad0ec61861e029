"""Phrases of all languages that mean something here.

By some, people ask for an action of the core without its name: "as a plan", "deploy it". Only phrases that hardly
mean anything else: what is told because of one fills a model's window, and anyone who needs more has HELP. A phrase is
matched as whole words, in any case, whatever stands around it. By others, a model announces what it does now.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

A_MODULE: Final = r"(?:(?:modules?|moduls?|m[oó]dulos?|moduł\w*|модул\w*)(?!\w)|模块|モジュール)"
"""A pattern of the word for a module."""

THE: Final = r"(?<!\w)(?:the|use|using|das|dem|le|el|il|o)"
"""A pattern of words before a module that is meant, and not just any of its kind."""

ANNOUNCING: Final = (
    # English
    r"(?:let me|let['’]?s|let us|i['’]?ll|i will|i['’]?m going to|i am going to|i should|i need to|i want to)\b",
    r"(?:first|now|next|then|before (?:that|i)|to begin|for later|for now)\b",
    r"(?:i )?(?:now |first |also )?(?:note|notes|noting|keep|keeping|save|saving|store|storing|record|recording)\b",
    # German
    r"(?:ich (?:werde|merke|notiere|speichere|halte|lege|sichere|behalte)|lass(?:t)? (?:mich|uns)|zuerst|zunächst|erst|jetzt|nun|als nächstes)\b",
    # French
    r"(?:je vais|je (?:note|garde|conserve|mémorise)|laisse[zr]?-moi|d['’]abord|maintenant|ensuite)\b",
    # Spanish
    r"(?:voy a|déjame|déjeme|primero|ahora|guardo|guardaré|anoto)\b",
    # Italian
    r"(?:(?:ora |adesso )?(?:salvo|annoto|memorizzo)|lasciami|prima|adesso|ora)\b",
    # Portuguese
    r"(?:vou|deixe-me|primeiro|agora|guardo|anoto)\b",
    # Polish, Russian
    r"(?:najpierw|teraz|zapisuję|zapiszę|zapamiętam)\b",
    r"(?:сначала|теперь|сейчас|я (?:сохраню|запишу|запомню)|сохраню|запишу|запомню)\b",
    # Chinese, Japanese
    r"(?:让我|我先|我来|我将|我会|首先|先|接下来|现在)",
    r"(?:まず|次に|それでは|では)",
)
"""Patterns of how a sentence begins that says what its author does now."""

_SAID: Final[Mapping[str, tuple[str, ...]]] = {
    "PLAN": (
        # English
        r"(?:as|in|with|into|use|using|write|make|run|start|execute) (?:a|the|your) (?:(?:static|reflective|reflecting|reflect|orchestrated|parallel|adaptive|dag) )?plan",
        r"workflows?",
        r"in parallel",
        # German
        r"als (?:reflektierende[rn] |parallele[rn] )?plan",
        r"mach\w* (?:einen|daraus einen) plan",
        r"arbeitsabl[aä]uf\w*",
        r"(?:alles|das|es|sie|beide\w*|dies\w*|möglichst|bitte) parallel",
        r"parallel (?:ab|an|arbeit|aus|be|durch|hol|lad|lauf|les|mach|prüf)\w*",
        # French
        r"(?:comme|en|avec|dans|sous forme de|fais) (?:un )?plan",
        r"en parallèle",
        r"flux de travail",
        # Spanish
        r"(?:como|con|en|haz) un plan",
        r"en paralelo",
        r"flujos? de trabajo",
        # Italian
        r"(?:come|con|in|fai) un piano",
        r"in parallelo",
        r"flusso di lavoro",
        # Portuguese
        r"(?:como|com|em|num|faça|faz) (?:um )?plano",
        r"em paralelo",
        r"fluxos? de trabalho",
        # Polish
        r"(?:jako|według|zrób) plan\w*",
        r"równolegle",
        # Russian
        r"(?:как|в виде|по|составь) план\w*",
        r"параллельно",
        r"рабочий процесс",
        # Chinese
        r"(?:作为|按照?|制定|用)(?:一个|一份)?计划",
        r"并行",
        r"工作流",
        # Japanese
        r"(?:計画|プラン)(?:として|を立て|で)",
        r"(?:並行して|並列[にで])",
        r"ワークフロー",
    ),
    "DEPLOY": (
        r"deploy(?: it| this| that| them)?",
        r"(?:make|build|write|create|code) (?:me |us )?(?:a |an )(?:new )?(?:tool|module)",
        r"deploye?n?",
        r"(?:mach|bau|schreib|erstell)\w* (?:mir |uns )?ein (?:neues )?(?:werkzeug|modul|tool)",
        r"ein (?:neues )?(?:werkzeug|modul) (?:bauen|schreiben|machen|erstellen)",
        r"(?:crée\w*|créer|écri\w+|fai[st]\w*|construi\w+) (?:moi |nous )?un (?:nouvel )?(?:outil|module)",
        r"déplo(?:ie|yer|yez)\w*",
        r"(?:crea\w*|escrib\w+|haz|hacer) (?:una (?:nueva )?herramienta|un (?:nuevo )?módulo)",
        r"(?:despliega|desplegar)\w*",
        r"(?:crea|scrivi|fai|costruisci)\w* (?:uno (?:nuovo )?strumento|un (?:nuovo )?modulo)",
        r"(?:cri[ea]r?|escrev\w+|faça|faz\w*) (?:uma (?:nova )?ferramenta|um (?:novo )?módulo)",
        r"implant(?:e|ar)",
        r"(?:zrób|napisz|stwórz) (?:nowe )?(?:narzędzie|moduł)",
        r"wdróż",
        r"(?:сделай|напиши|создай) (?:новый )?(?:инструмент|модуль)",
        r"разверни",
        r"部署",
        r"(?:写|编写|做|制作|创建)(?:一个)?(?:工具|模块)",
        r"デプロイ",
        r"(?:ツール|モジュール)を(?:作|書)",
    ),
    "LOAD": (r"load (?:the|a|that|my|our) module", r"(?:module )?catalogue of modules", r"lad\w* das modul"),
    "SKILL": (
        r"(?:make|write|save|keep|offer|create|remember)(?: \w+){0,3} (?:as )?(?:a|the) (?:new )?skill",
        r"(?:als|einen) skill",
    ),
}

_BEFORE: Final = r"(?<![A-Za-z0-9_À-ÿĀ-žЀ-ӿ./-])"
_BEHIND: Final = r"(?![A-Za-z0-9_À-ÿĀ-žЀ-ӿ/-]|\.\w)"


def _pattern(phrases: tuple[str, ...]) -> re.Pattern[str]:
    choices = "|".join(phrases).replace(" ", r"\s+")
    return re.compile(f"{_BEFORE}(?:{choices}){_BEHIND}")


_PATTERNS: Final[Mapping[str, re.Pattern[str]]] = {
    action: _pattern(phrases) for action, phrases in _SAID.items()
}


_ANY: Final = _pattern(tuple(phrase for phrases in _SAID.values() for phrase in phrases))
"""All of them. Most texts hold none, and are read once."""


def actions_asked_for(text: str) -> list[str]:
    """Return the actions of the core that a text asks for by a phrase."""
    # Patterns in lower case are found three times as fast as patterns for any case.
    lowered = text.lower()
    if _ANY.search(lowered) is None:
        return []
    return [action for action, pattern in _PATTERNS.items() if pattern.search(lowered) is not None]
