"""Interwiki prefixes: the targets of ``[[wikt:word]]`` and ``[[fr:Titre]]``.

Dumps do not contain a wiki's interwiki table. This module knows the prefixes of Wikimedia's projects
(https://meta.wikimedia.org/wiki/Interwiki_map); settings add those of other wikis.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from linkstore.ingest.wiki.siteinfo import SiteInfo

PLACE: Final = "$1"
"""Stands in an interwiki URL for the title."""

_PROJECTS: Final = {
    "wikipedia": ("w", "wikipedia"),
    "wiktionary": ("wikt", "wiktionary"),
    "wikibooks": ("b", "wikibooks"),
    "wikinews": ("n", "wikinews"),
    "wikiquote": ("q", "wikiquote"),
    "wikisource": ("s", "wikisource"),
    "wikiversity": ("v", "wikiversity"),
    "wikivoyage": ("voy", "wikivoyage"),
}
"""Projects with a wiki for each language."""

_PLAIN: Final = 3
"""Shorter prefixes than this are known on Wikimedia's own wikis only."""

_FIXED: Final = {
    "https://commons.wikimedia.org/wiki/$1": ("c", "commons"),
    "https://www.wikidata.org/wiki/$1": ("d", "wikidata"),
    "https://meta.wikimedia.org/wiki/$1": ("m", "meta", "metawikipedia"),
    "https://species.wikimedia.org/wiki/$1": ("species", "wikispecies"),
    "https://www.mediawiki.org/wiki/$1": ("mw", "mediawikiwiki"),
    "https://foundation.wikimedia.org/wiki/$1": ("foundation", "wmf"),
    "https://phabricator.wikimedia.org/$1": ("phab", "phabricator"),
    "https://doi.org/$1": ("doi",),
    "https://datatracker.ietf.org/doc/html/rfc$1": ("rfc",),
    "https://arxiv.org/abs/$1": ("arxiv",),
    "https://pubmed.ncbi.nlm.nih.gov/$1": ("pmid",),
}

_CODES: Final = """
    aa ab ace af ak als am an ang ar arc arz as ast av ay az azb ba bar bat-smg bcl be be-tarask be-x-old bg
    bh bi bjn bm bn bo bpy br bs bug bxr ca cbk-zam cdo ce ceb ch cho chr chy ckb co cr crh cs csb cu cv cy
    da de diq dsb dv dz ee el eml en eo es et eu ext fa ff fi fiu-vro fj fo fr frp frr fur fy ga gag gan gd
    gl glk gn gom got gsw gu gv ha hak haw he hi hif ho hr hsb ht hu hy hz ia id ie ig ii ik ilo io is it iu
    ja jbo jv ka kaa kab kbd kg ki kj kk kl km kn ko koi kr krc ks ksh ku kv kw ky la lad lb lbe lez lg li
    lij lmo ln lo lrc lt ltg lv lzh mai map-bms mdf mg mh mhr mi min mk ml mn mr mrj ms mt mus mwl my myv mzn
    na nah nan nap nb nds nds-nl ne new ng nl nn no nov nrm nso nv ny oc olo om or os pa pag pam pap pcd pdc
    pfl pi pih pl pms pnb pnt ps pt qu rm rmy rn ro roa-rup roa-tara ru rue rup rw sa sah sc scn sco sd se sg
    sh si simple sk sl sm sn so sq sr srn ss st stq su sv sw szl ta tcy te tet tg th ti tk tl tn to tpi tr ts
    tt tum tw ty tyv udm ug uk ur uz ve vec vep vi vls vo vro wa war wo wuu xal xh xmf yi yo yue za zea zh
    zh-classical zh-min-nan zh-yue zu
"""
_LANGUAGES: Final = frozenset(_CODES.split())


@dataclass(frozen=True, slots=True)
class Interwiki:
    """The target of a prefix.

    Args:
        url: An address with ``$1`` in place of the title.
        is_language: Whether a link without a leading colon is not part of the text, but names the same
            article in another language.
    """

    url: str
    is_language: bool = False


class InterwikiMap:
    """The prefixes of a wiki.

    Args:
        site: The wiki.
        further: Addresses with ``$1`` by prefix, besides those of Wikimedia.
    """

    def __init__(self, site: SiteInfo, further: Mapping[str, str]) -> None:
        parts = site.host.split(".")
        self._project = parts[-2] if site.is_wikimedia and parts[-2] in _PROJECTS else ""
        own = site.language.partition("-")[0]
        self._own = parts[0] if self._project and parts[0] in _LANGUAGES else own
        self._known = {prefix: Interwiki(url) for prefix, url in self._wikimedia(site)}
        self._known |= {prefix.casefold(): Interwiki(url) for prefix, url in further.items()}

    def get(self, prefix: str) -> Interwiki | None:
        """Return the target of a folded prefix, or None if it is not a prefix."""
        known = self._known.get(prefix)
        if known is None and self._project and prefix in _LANGUAGES:
            return Interwiki(f"https://{prefix}.{self._project}.org/wiki/{PLACE}", is_language=True)
        return known

    def is_own(self, prefix: str) -> bool:
        """Say whether a prefix names the wiki itself by its language."""
        return bool(self._project) and prefix == self._own

    def _wikimedia(self, site: SiteInfo) -> list[tuple[str, str]]:
        language = self._own or "en"
        known = [(prefix, url) for url, prefixes in _FIXED.items() for prefix in prefixes]
        for project, prefixes in _PROJECTS.items():
            known += [(prefix, f"https://{language}.{project}.org/wiki/{PLACE}") for prefix in prefixes]
        return [(prefix, url) for prefix, url in known if site.is_wikimedia or len(prefix) >= _PLAIN]
