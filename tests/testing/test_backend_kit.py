from collections import Counter

from cynosure.testing.backend_kit import BackendKit


def test_no_chapter_of_the_kit_hides_a_test_of_another() -> None:
    chapters = BackendKit.__mro__[1:]

    names = Counter(name for chapter in chapters for name in vars(chapter) if name.startswith("test_"))

    assert names
    assert [name for name, times in names.items() if times > 1] == []
