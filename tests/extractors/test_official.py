"""Laws, judgments, trials and codes are found by number; reference lists in other languages are read."""

from __future__ import annotations

import pytest
from internals import CitationExtractor
from langchain_core.documents import Document

EXTRACTOR = CitationExtractor()


def cite(text: str) -> list[str]:
    return [link.tag for link in EXTRACTOR.extract(Document(page_content=text)) if link.leads_out]


@pytest.mark.parametrize(
    ("text", "tag"),
    [
        ("See ECLI:EU:C:2014:317.", "ecli:eu:c:2014:317"),
        ("Regulation (EU) 2016/679", "eu-regulation:2016/679"),
        ("Verordnung (EU) 2016/679", "eu-regulation:2016/679"),
        ("le règlement (CE) n° 1907/2006", "eu-regulation:1907/2006"),
        ("Directive 95/46/EC", "eu-directive:95/46"),
        ("Richtlinie 95/46/EG", "eu-directive:95/46"),
        ("Council Decision 2010/48/EC", "eu-decision:2010/48"),
        ("CELEX 32016R0679", "celex:32016r0679"),
        ("Case C-131/12 Google Spain", "cjeu:c-131/12"),
        ("Rechtssache C\u2011131/12", "cjeu:c-131/12"),
        ("Article 17(1) GDPR", "gdpr:17"),
        ("Art. 17 Abs. 1 DS-GVO", "gdpr:17"),
        ("l'article 17 du RGPD", "gdpr:17"),
        ("§ 433 Abs. 1 Satz 2 BGB", "law:433 bgb"),
        ("§§ 812 ff. BGB", "law:812 bgb"),
        ("Art. 5 Abs. 3 GG", "law:5 gg"),
        ("BGH, Urteil vom 12.3.2019 - VI ZR 12/18", "docket:vi zr 12/18"),
        ("BVerfG, 1 BvR 2656/18", "docket:1 bvr 2656/18"),
        ("BGHZ 44, 367", "reports:bghz 44 367"),
        ("[2005] UKHL 61", "ncn:2005 ukhl 61"),
        ("[2019] EWCA Civ 1558", "ncn:2019 ewca civ 1558"),
        ("410 U.S. 113 (1973)", "us-case:410 u.s. 113"),
        ("410 U. S. 113", "us-case:410 u.s. 113"),
        ("123 F.3d 456", "us-case:123 f.3d 456"),
        ("123 F. 3d 456", "us-case:123 f.3d 456"),
        ("42 U.S.C. § 1983", "usc:42 1983"),
        ("42 USC 1983", "usc:42 1983"),
        ("45 C.F.R. § 164.512", "cfr:45 164.512"),
        ("Pub. L. No. 111-148", "us-law:111-148"),
        ("U.S. Patent No. 5,960,411", "us-patent:5960411"),
        ("EP 1234567 B1", "ep-patent:1234567"),
        ("WO 2004/016607 A1", "wo-patent:2004/016607"),
        ("trial NCT04280705", "trial:nct04280705"),
        ("ISRCTN50189673.", "trial:isrctn50189673"),
        ("EudraCT 2015-001234-56", "eudract:2015-001234-56"),
        ("ICD-10 I21.9", "icd:10 i21.9"),
        ("ICD-10-CM code E11.65", "icd:10 e11.65"),
        ("ICD-11 code 8A80.1", "icd:11 8a80.1"),
        ("LOINC 718-7", "loinc:718-7"),
        ("SNOMED CT 22298006", "snomed:22298006"),
        ("ATC code N02BE01", "atc:n02be01"),
        ("CAS No. 50-78-2", "cas:50-78-2"),
        ("MedDRA 10028596", "meddra:10028596"),
        ("OMIM 141900", "omim:141900"),
        ("HGNC:1100", "hgnc:1100"),
        ("UniProt P04637", "uniprot:p04637"),
        ("ISSN 0028-0836", "issn:0028-0836"),
        ("ISSN 2434-561X", "issn:2434-561x"),
        ("https://orcid.org/0000-0002-1825-0097", "orcid:0000-0002-1825-0097"),
        ("IEEE 802.11ax", "ieee:802.11ax"),
        ("IEEE Std 754-2019", "ieee:754"),
        ("STD 66", "std:66"),
    ],
)
def test_an_official_number_is_found_in_a_sentence(text: str, tag: str) -> None:
    assert cite(f"They rely on {text} in part.") == [tag]


@pytest.mark.parametrize(
    "text",
    """Version 2016/679 of the file was lost.
    The regulation of 2016 was strict. Regulation (EU) applies since 2016.
    We met on 95/46 Elm Street, EC 1. Directive number 5 says keep left.
    La directive du chef, 2000/31 pages. Decision 2010 was 48 pages long. Verordnung Nr. 5 der Gemeinde.
    He scored 410 U.S. points in 113 games. In the U.S. 113 people were asked.
    About 42 U.S. companies took part.
    The class of 17 USC students (107 in all) came. It took 45 C.F.R. to find out. See section 1983.
    See § 12 for an example. § 3 Installation of the pump. Art. 6 of the rules. Art. 5 hangs in the museum.
    The GDPR is long, and the BGB is a code. Absatz 433 Satz 2 des Buches.
    On [2005] many things changed. In [2019] Berlin was visited by 61 guests.
    NCT is a boy band; NCT 127 is a unit. NCT0428070 has too few digits, NCT042807055 too many.
    ICD-10 is a classification. Room I21.9 is on the second floor. Highway A10.5 was closed.
    The code 718-7 opens the door. LOINC is a system.
    SNOMED CT has 22298006 downloads. OMIM lists 16000 genes.
    Call 50-78-2 for the porter. CAS 50-78-3, ISSN 0028-0837 and ORCID 0000-0002-1825-0098 are checked.
    C-131 is a transport plane; C-47 another. T-201/2 is a locomotive. Case C was dismissed.
    Das Zimmer 12/18 im VI. Stock. VI ZR are letters. NJW 2019 is a volume. BGHZ is a collection.
    EP 3 by the band sold 12345 copies. US 66 is a highway. Our WO 2004 meeting had 16 guests.
    IEEE has 400,000 members, IEEE 2019 was in Rome. STD rates rose by 66 percent.
    ECLI:EU is not complete. EudraCT is a database, since 2015-001.
    P04637 is a room in Paris.""".splitlines(),
)
def test_what_only_looks_like_an_official_number_is_none(text: str) -> None:
    assert cite(text.strip()) == []


@pytest.mark.parametrize(
    ("heading", "entry", "title"),
    [
        ("Literatur", "Weber, Max (1922): Wirtschaft und Gesellschaft. Mohr.", "wirtschaft und gesellschaft"),
        (
            "7 Quellenverzeichnis",
            "[3] Voss, U.: Heizlast im alten Bestand. Bonn 2021.",
            "heizlast im alten bestand",
        ),
        ("Références", "[1] J. Dupont, « Les canaux du Midi », Revue, 1998.", "les canaux du midi"),
        (
            "## Bibliografía",
            "Ortega, J. (2001). Pieles y papeles antiguos. Prensas.",
            "pieles y papeles antiguos",
        ),
        ("**Literatuurlijst**", "De Vries, K. (1976). Molens in het veen. Brill.", "molens in het veen"),
        (
            "Список литературы",
            "1. Петров П. П. Ветряные мельницы Урала. Лань, 1999.",
            "ветряные мельницы урала",
        ),
        ("参考文献", "[1] 王建国. 古代水车的起源[J]. 农业考古, 1998(3): 12-18.", "古代水车的起源"),
        ("## 参考文献", "[1] 田中太郎『日本の水車の歴史』岩波書店、1995年。", "日本の水車の歴史"),
        ("참고문헌", "[1] 김철수. 물레방아의 보급 연구. 한국사연구, 2001.", "물레방아의 보급 연구"),
        ("Notes", "3. Finn, C. Third study of silt. 1992.", "third study of silt"),
        ("References", "Smith, J. (in press). Letters of a baker. Press.", "letters of a baker"),
        ("References", "[Vas17] A. Vaswani. Attention is all. 2017.", "attention is all"),
    ],
)
def test_a_reference_list_is_read_in_other_languages_and_shapes(heading: str, entry: str, title: str) -> None:
    assert cite(f"A text.\n\n{heading}\n\n{entry}\n") == [f"ref:{title}"]


def test_footnotes_that_name_works_are_a_list_and_those_of_prose_are_none() -> None:
    notes = "[^4]: Rossi, M. The ovens of Pompeii. 2001.\n[^a]: In 2019 it rained. It was wet.\n"
    text = f"Known.[^4] Told.[^a]\n\n{notes}"
    assert cite(text) == ["ref:the ovens of pompeii"]


@pytest.mark.parametrize("heading", ["Notes", "Literatur", "Sources"])
def test_a_numbered_list_of_prose_below_a_common_heading_is_no_reference_list(heading: str) -> None:
    assert (
        cite(f"A text [1].\n\n{heading}\n\n1. Stop the server in 2020. Then start it again slowly.\n") == []
    )


@pytest.mark.parametrize(
    ("citation", "numbers"),
    [("[5]\u2013[7]", 3), ("[5-7]", 3), ("[5, 7]", 2), ("note 6", 1), ("研究[6]认为", 1), ("array[6]", 0)],
)
def test_a_citation_counts_for_each_entry_that_it_resolves_to(citation: str, numbers: int) -> None:
    entries = "".join(f"[{n}] A. Doe. The title of number {n}. 2020.\n" for n in range(5, 8))
    text = f"See [5], [6], [7] and {citation}.\n\nReferences\n\n{entries}"
    links = [link for link in EXTRACTOR.extract(Document(page_content=text)) if link.leads_out]
    assert sum(link.weight == 0.75 for link in links) == numbers


def test_brackets_that_begin_like_footnotes_are_no_list() -> None:
    assert cite("The pattern [^a-z] matches digits, and [^4] is a note without text.") == []
