"""How many trials a second a client, a scheduler and a store take, with so many simulated workers.

    WHICHFS_PROGRAM=… python packaging/python/tests/simulate_workers.py WORKERS SECONDS TRIALS

Workers are threads of Dask's workers, ten each, all in this process; a trial only waits so many seconds, and its record is one of a real trial
under another seed. Everything else is real: the plan, the tasks, the import. The lab must be there for that one trial.
"""

import hashlib
import json
import os
import resource
import subprocess
import sys
import tempfile
import time

import dask
import distributed

from whichfs import _cluster_worker, cluster
from whichfs._files import toml

STUDY = {"name": "far", "kind": "performance", "title": "Far", "source": "a test", "method": "As it is.",
         "cards": ["class4-4gb"], "boards": ["generic-1ghz"], "seeds": 1, "candidates": ["ext2"],
         "workloads": [{"name": "tree", "workload": "rootfs", "parameters": {"bytes": 12_582_912, "files": 200}}]}


THREADS = 10


def compact(document):
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False)


def with_seed(document, identity, seed):
    """The document of the same trial with another seed; `identity` is part of it."""
    identity["seed"] = seed
    document["id"] = hashlib.sha256(compact(identity).encode()).hexdigest()
    return compact(document)


def main(workers, seconds, trials):
    with tempfile.TemporaryDirectory() as home:
        os.environ["XDG_DATA_HOME"] = home
        study = os.path.join(home, "far.toml")
        with open(study, "w") as file:
            file.write(toml(STUDY))
        whichfs = [os.environ["WHICHFS_PROGRAM"]]
        planned = subprocess.run([*whichfs, "study", "plan", study], check=True, capture_output=True, text=True).stdout
        ran = subprocess.run([*whichfs, "trial", "run"], input=planned, check=True, capture_output=True, text=True).stdout
        line = json.loads(planned)

        def plan(_study, _options, path):
            with open(path, "w") as out:
                for seed in range(1, trials + 1):
                    out.write(with_seed(line, line["identity"], seed) + "\n")

        def trial(options, text):
            if "--check" not in options:
                time.sleep(seconds)
            record = json.loads(ran)
            return 0, with_seed(record, record["trial"]["identity"], json.loads(text)["identity"]["seed"]), ""

        cluster._plan, _cluster_worker._whichfs = plan, trial
        cluster.WINDOW = max(cluster.WINDOW, 2 * workers)
        threads = min(THREADS, workers)
        # Each worker watches its machine and profiles its threads: a hundred of them in one process would do little else.
        dask.config.set({"distributed.worker.profile.enabled": False, "distributed.admin.system-monitor.interval": "60s"})
        with distributed.LocalCluster(n_workers=workers // threads, threads_per_worker=threads, processes=False, dashboard_address=None,
                                      memory_limit=0) as site:
            begun = time.monotonic()
            cluster.run_trials(study, site.scheduler_address, progress=False)
            took = time.monotonic() - begun
        ideal = seconds * -(-trials // workers)
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
        print(f"{workers} workers, {trials} trials of {seconds:g} s: {took:.1f} s ({trials / took:.0f} a second; "
              f"{ideal:.1f} s if nothing else took time), {memory} MiB")
        # What was started in this process is not worth waiting for.
        sys.stdout.flush()
        os._exit(0)


main(int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]))
