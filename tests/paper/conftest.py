import pytest


@pytest.fixture(scope="session")
def judged():
    """The paper's claims with their verdicts: they take seconds, and are judged once for all that look at them."""
    from spaql.paper.audit import judge

    return judge.verdicts()
