# SPDX-License-Identifier: MIT
"""contrib/kubernetes, against the schema of Kubernetes' API: as an API server that refuses unknown fields.

`kubernetes-1.27.json` says where it is from; jsonschema interprets it. What the commands in the manifests do is in
test_production.py."""
import copy
import json

import jsonschema
import pytest
import yaml

from cairn_run import ROOT

MANIFESTS = sorted((ROOT / "contrib/kubernetes").glob("*.yaml"))
SCHEMAS = json.loads((ROOT / "tests/e2e/kubernetes-1.27.json").read_text())
KINDS = {("v1", "Pod"): "io.k8s.api.core.v1.Pod", ("apps/v1", "DaemonSet"): "io.k8s.api.apps.v1.DaemonSet"}

for schema in SCHEMAS["components"]["schemas"].values():
    if "properties" in schema:
        schema["additionalProperties"] = False  # the published schema lets an older server ignore what is new


def complaints(document):
    """What the schema of the document's kind says against it."""
    name = KINDS[document["apiVersion"], document["kind"]]
    validator = jsonschema.Draft4Validator({"$ref": f"#/components/schemas/{name}", **SCHEMAS})
    return [f"{'/'.join(map(str, problem.absolute_path))}: {problem.message}" for problem in validator.iter_errors(document)]


def template_of(document):
    return document if document["kind"] == "Pod" else document["spec"]["template"]


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.name)
def test_each_manifest_is_what_the_api_takes(path):
    documents = list(yaml.safe_load_all(path.read_text()))
    assert documents
    for document in documents:
        assert complaints(document) == []
        if "selector" in document["spec"]:
            labels = document["spec"]["template"]["metadata"]["labels"]
            assert document["spec"]["selector"]["matchLabels"].items() <= labels.items()
        for container in template_of(document)["spec"]["containers"]:
            assert container.get("resources", {}).keys() <= {"limits", "requests"}


def mistakes(template):
    """Changes that people make, of a pod's template."""
    pod, cairn = template["spec"], template["spec"]["containers"][-1]
    yield "an unknown field", lambda: pod.update(hostPid=True)
    yield "a text for a number", lambda: cairn["ports"][0].update(containerPort="9464")
    yield "a text for a condition", lambda: cairn["securityContext"].update(readOnlyRootFilesystem="yes")
    yield "capabilities at the pod", lambda: pod.update(securityContext={"capabilities": {"drop": ["ALL"]}})
    yield "a list for a text", lambda: cairn.update(image=["cairn"])
    yield "a text for a list", lambda: cairn.update(args="record -q")
    yield "an unknown seccomp profile", lambda: cairn["securityContext"].update(seccompProfile={"type": "None"})
    yield "a mount without a path", lambda: cairn["volumeMounts"][0].pop("mountPath")
    yield "a container without a name", lambda: cairn.pop("name")


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.name)
def test_mistakes_are_noticed(path):
    sound = yaml.safe_load(path.read_text())
    names = [name for name, _ in mistakes(template_of(sound))]
    for number, name in enumerate(names):
        document = copy.deepcopy(sound)
        list(mistakes(template_of(document)))[number][1]()
        assert complaints(document), name
