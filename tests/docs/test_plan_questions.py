"""The questions about plans in the documentation are those that are asked, and fit into a small window."""

from __future__ import annotations

from docs.measurements.plan_questions import FOLDER, JOBS, MODES, WINDOW, pages, questions
from iact.core.context.tokens import estimate
from iact.core.plan.prompt import room_in


def test_the_files_are_what_is_asked() -> None:
    made = pages()
    assert {file.name for file in FOLDER.iterdir()} == made.keys()
    old = [name for name, text in made.items() if (FOLDER / name).read_text(encoding="utf-8") != text]
    assert not old, "python -m docs.measurements.plan_questions"


def test_each_question_of_each_job_fits_and_begins_with_the_persons_words() -> None:
    for job in JOBS:
        for mode in MODES:
            for kind, text in questions(job, mode):
                assert estimate(text) <= room_in(WINDOW) * 1.05, (job.name, mode, kind)
                assert text.index(job.words) < 500, (job.name, mode, kind)
