"""What nearly all of `spaql.paper` needs: whoever imports this learns which extra brings what is missing."""

from importlib.util import find_spec

if missing := [name for name in ("pandas", "matplotlib", "scipy", "joblib") if find_spec(name) is None]:
    raise ModuleNotFoundError(f"this needs {missing[0]}: pip install 'spaql[paper]'", name=missing[0])
