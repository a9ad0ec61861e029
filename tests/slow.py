"""What `make test` leaves to `make test-slow`, which the continuous build plays behind it.

`make test` shows each promise to one person on one machine through the real product. Left to the second are many machines,
many people, further programs of others behind the first of a kind, models and long work, the wheel, the page beyond a
person's main ways, and whole modules in their containers.
"""

from __future__ import annotations

from typing import Final

SLOW: Final = (
    # Many machines.
    "acceptance/test_cluster.py",
    "acceptance/test_cluster_tls.py",
    "acceptance/test_crowd.py",
    "acceptance/test_frozen.py",
    "acceptance/test_kubernetes.py",
    "acceptance/test_people_in_cluster.py",
    "acceptance/test_ray.py",
    "acceptance/test_scenes_in_cluster.py",
    "acceptance/test_store_faults.py",
    "sandbox/test_registry.py",
    # Many people.
    "acceptance/test_apart_page.py",
    "acceptance/test_backup.py",
    "acceptance/test_everybody_page.py",
    "acceptance/test_links_served.py",
    "acceptance/test_people_firefox.py",
    "acceptance/test_people_page.py",
    "acceptance/test_provider_page.py",
    "acceptance/test_proxies.py",
    "acceptance/test_quotas_served.py",
    "acceptance/test_rights_served.py",
    "acceptance/test_who_served.py",
    "web/test_load.py",
    "web/test_load_page.py",
    "accounts/test_restored.py",
    # Further programs of others, and their checkers.
    "acceptance/test_a2a.py",
    "acceptance/test_acp_node.py",
    "acceptance/test_faces_refusals.py",
    "acceptance/test_foreign_agents.py",
    "acceptance/test_foreign_page.py",
    "acceptance/test_inspect.py",
    "acceptance/test_mcp_http.py",
    "acceptance/test_responses.py::test_what_is_published_is_what_is_answered",
    "docs/test_sessions.py",
    "ext_modules/test_mcp_conformance.py",
    "faces/test_conformance.py",
    "faces/test_inspect_log.py",
    "faces/test_mcp_conformance.py",
    # Models, and long work.
    "acceptance/test_cases.py",
    "acceptance/test_day.py",
    "acceptance/test_embedded.py",
    "acceptance/test_evaluation.py",
    "acceptance/test_installs.py",
    "acceptance/test_races.py",
    "acceptance/test_workshop.py",
    "core/models/test_embedded.py",
    # What is built and installed.
    "packaging/",
    # The page beyond a person's main ways.
    "acceptance/test_browser.py::test_thousands_of_records_are_scrubbed_and_forked_in_the_middle",
    "acceptance/test_limits_page.py",
    "acceptance/test_review_page.py",
    "examples/",
    "iact/test_export.py",
    "web/test_accessible_page.py",
    "web/test_firefox.py",
    "web/test_language.py",
    "web/test_opening_page.py",
    "web/test_reading_page.py",
    "web/test_rendering.py",
    "web/test_replay_page.py",
    "web/test_sessions_page.py",
    "web/test_settings_page.py",
    "web/test_timeline_page.py",
    "web/test_workspace_page.py",
    # Modules in their containers, and walls of other backends than the usual ones.
    "sandbox/test_app_module.py",
    "sandbox/test_browser_module.py",
    "sandbox/test_docs_module.py",
    "sandbox/test_git_module.py",
    "sandbox/test_installs.py",
    "sandbox/test_mcp_module.py",
    "sandbox/test_ordinary_user.py",
    "sandbox/test_python_module.py",
    "sandbox/test_sql_module.py",
    "sandbox/live/",
)
"""Folders, files or single tests, from `tests/`."""
