"""Bytes in, entries out. Opens no socket and no file, and never raises for what a document holds.

The names below are the interface of this room for checks and exports. They are imported when they are first used.
"""

from __future__ import annotations

TYPE_CHECKING = False  # as typing has it, whose import takes longer than this module's
if TYPE_CHECKING:
    from usp.scan.columns import CHANGE_FREQUENCIES as CHANGE_FREQUENCIES
    from usp.scan.columns import PAGE_TYPES as PAGE_TYPES
    from usp.scan.columns import Column as Column
    from usp.scan.columns import Columns as Columns
    from usp.scan.columns import List as List
    from usp.scan.columns import Scalar as Scalar
    from usp.scan.columns import Struct as Struct
    from usp.scan.columns import Type as Type
    from usp.scan.columns import between as between
    from usp.scan.columns import bits as bits
    from usp.scan.columns import column_of as column_of
    from usp.scan.columns import columns_of_all as columns_of_all
    from usp.scan.columns import flags_of as flags_of
    from usp.scan.columns import microseconds as microseconds
    from usp.scan.dates import parse_date as parse_date
    from usp.scan.elements import Element as Element
    from usp.scan.elements import alternate_link as alternate_link
    from usp.scan.lines import MAX_ROBOTS_TXT_BYTES as MAX_ROBOTS_TXT_BYTES
    from usp.scan.lines import robots_text as robots_text
    from usp.scan.places import with_line_feeds as with_line_feeds
    from usp.scan.robots import RobotsRule as RobotsRule
    from usp.scan.robots import disallowed_paths as disallowed_paths
    from usp.scan.robots import robots_txt_for as robots_txt_for
    from usp.scan.robots import rules_for as rules_for
    from usp.scan.survey import MAX_IMAGES as MAX_IMAGES
    from usp.scan.survey import MAX_URL_LENGTH as MAX_URL_LENGTH
    from usp.scan.survey import MAX_VIDEO_TAGS as MAX_VIDEO_TAGS
    from usp.scan.survey import OPTIONAL_FIELDS as OPTIONAL_FIELDS
    from usp.scan.survey import SURVEYED as SURVEYED
    from usp.scan.survey import SURVEYORS as SURVEYORS
    from usp.scan.survey import VIDEO_LENGTHS as VIDEO_LENGTHS
    from usp.scan.survey import VIDEO_LOCATIONS as VIDEO_LOCATIONS
    from usp.scan.survey import VIDEO_RANGES as VIDEO_RANGES
    from usp.scan.survey import VIDEO_RELATED as VIDEO_RELATED
    from usp.scan.survey import VIDEO_RELATIONSHIPS as VIDEO_RELATIONSHIPS
    from usp.scan.survey import VIDEO_REQUIRED as VIDEO_REQUIRED
    from usp.scan.survey import PureSurvey as PureSurvey
    from usp.scan.survey import PureURLTable as PureURLTable
    from usp.scan.survey import SitemapStats as SitemapStats
    from usp.scan.survey import SurveyOff as SurveyOff
    from usp.scan.survey import SurveyOptions as SurveyOptions
    from usp.scan.survey import Surveyors as Surveyors
    from usp.scan.survey import date_code as date_code
    from usp.scan.survey import elsewhere_code as elsewhere_code
    from usp.scan.survey import first_unescaped as first_unescaped
    from usp.scan.survey import has_double_escape as has_double_escape
    from usp.scan.survey import is_lower_frequency as is_lower_frequency
    from usp.scan.survey import is_old as is_old
    from usp.scan.survey import is_out_of_order as is_out_of_order
    from usp.scan.survey import is_out_of_range as is_out_of_range
    from usp.scan.survey import may_be_disallowed as may_be_disallowed
    from usp.scan.survey import same_url_key as same_url_key
    from usp.scan.url_parts import URL_PARTS as URL_PARTS
    from usp.scan.url_parts import split_urls as split_urls
    from usp.scan.urls import absolute_url as absolute_url
    from usp.scan.urls import is_http_url as is_http_url
    from usp.scan.urls import strip_url_to_homepage as strip_url_to_homepage
    from usp.scan.urls import unescaped_url as unescaped_url
    from usp.scan.values import parse_change_frequency as parse_change_frequency
    from usp.scan.values import parse_priority as parse_priority
    from usp.scan.values import plain_text as plain_text
    from usp.scan.values import unescape as unescape
    from usp.scan.vocabulary import Kind as Kind

_MODULES = {
    "columns": (
        "CHANGE_FREQUENCIES",
        "PAGE_TYPES",
        "Column",
        "Columns",
        "List",
        "Scalar",
        "Struct",
        "Type",
        "between",
        "bits",
        "column_of",
        "columns_of_all",
        "flags_of",
        "microseconds",
    ),
    "dates": ("parse_date",),
    "elements": ("Element", "alternate_link"),
    "lines": ("MAX_ROBOTS_TXT_BYTES", "robots_text"),
    "places": ("with_line_feeds",),
    "robots": ("RobotsRule", "disallowed_paths", "robots_txt_for", "rules_for"),
    "survey": (
        "MAX_IMAGES",
        "MAX_URL_LENGTH",
        "MAX_VIDEO_TAGS",
        "OPTIONAL_FIELDS",
        "SURVEYED",
        "SURVEYORS",
        "VIDEO_LENGTHS",
        "VIDEO_LOCATIONS",
        "VIDEO_RANGES",
        "VIDEO_RELATED",
        "VIDEO_RELATIONSHIPS",
        "VIDEO_REQUIRED",
        "PureSurvey",
        "PureURLTable",
        "SitemapStats",
        "SurveyOff",
        "SurveyOptions",
        "Surveyors",
        "date_code",
        "elsewhere_code",
        "first_unescaped",
        "has_double_escape",
        "is_lower_frequency",
        "is_old",
        "is_out_of_order",
        "is_out_of_range",
        "may_be_disallowed",
        "same_url_key",
    ),
    "url_parts": ("URL_PARTS", "split_urls"),
    "urls": ("absolute_url", "is_http_url", "strip_url_to_homepage", "unescaped_url"),
    "values": ("parse_change_frequency", "parse_priority", "plain_text", "unescape"),
    "vocabulary": ("Kind",),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}

__all__ = list(_MODULE_OF)


if not TYPE_CHECKING:  # so that mypy knows each name by its import above

    def __getattr__(name: str) -> object:
        """Import a name of the interface when it is first used."""
        if name not in _MODULE_OF:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        value = globals()[name] = getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
        return value
