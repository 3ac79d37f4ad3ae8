"""Programs with a Spark of their own: Ctrl-C, options of `spark-submit`, an environment that is not active.

Then the `python3` of the path is another, or none.
"""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

from leaderless import open_log_sync
from tests.analysis.standalone import JAVA, driver
from tests.programs import ROOT, need

pytestmark = [pytest.mark.spark, pytest.mark.process]

# A command whose job would take years; its argument is an archive of classes. When the job is about to begin it
# says whether Spark shows a UI, and the options of its Java.
ENDLESS = """
import signal
import sys
from pathlib import Path
signal.signal(signal.SIGINT, signal.default_int_handler)  # whatever this process inherited
from analysis import cli, spark as started
started.CLASSES = Path(sys.argv.pop())

@cli.main.command()
def endless():
    with started.session("local[1]", brief=True) as spark:
        print(spark.conf.get("spark.ui.enabled"))
        print(spark.conf.get("spark.driver.extraJavaOptions"), flush=True)
        spark.range(10**16).selectExpr("sum(id * id % 7)").collect()

cli.main(["endless"])
"""


@pytest.mark.slow
def test_an_interrupt_is_one_sentence_and_the_users_settings_hold(tmp_path: Path) -> None:
    """Java passes over a damaged archive of Spark's classes, and says nothing of it."""
    (tmp_path / "spark-defaults.conf").write_text("spark.ui.enabled true\nspark.ui.port 0\n")
    damaged = tmp_path / "a folder" / "classes.jsa"
    damaged.parent.mkdir()
    damaged.write_bytes(b"not an archive")
    with subprocess.Popen(
        [sys.executable, "-c", ENDLESS, str(damaged)],
        env=os.environ | {"SPARK_CONF_DIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as command:
        assert command.stdout
        assert command.stderr
        assert command.stdout.readline() == "true\n"
        options = command.stdout.readline().rstrip()
        assert options.endswith(f"'-XX:SharedArchiveFile={damaged}'")
        # As a terminal does: Java and its workers get it, too.
        os.killpg(command.pid, signal.SIGINT)
        assert command.stderr.read() == "Error: Stopped by Ctrl-C.\n"
        assert command.stdout.read() == ""
    assert command.returncode == 130


NEEDED = ("bash", "dirname", "java", "ps", "rm")  # by Spark's own scripts
OWN_SESSION = """
import sys
from pyspark.sql import SparkSession
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
from leaderless.spark import LeaderlessDataSource
spark.dataSource.register(LeaderlessDataSource)
print(spark.read.format("leaderless").load(sys.argv[1]).count(), "rows")
"""
SUBMITTED = """
from analysis.spark import session
with session("local[*]", brief=True) as spark:
    rows = spark.sparkContext.parallelize([1, 2, 3]).map(lambda each: each).collect()
    print(spark.sparkContext.master, spark.conf.get("spark.sql.shuffle.partitions"), rows[-1])
"""


def last_words(command: list[object], folder: Path, python3: str = "", **variables: str) -> str:
    """The last line of a program, whose path has what Spark needs alone; with a `python3` of this text."""
    commands = folder / "commands"
    commands.mkdir()
    for name in NEEDED:
        (commands / name).symlink_to(need(name))
    if python3:
        (commands / "python3").write_text(python3)
        (commands / "python3").chmod(0o700)
    hidden = ("PYSPARK_PYTHON", "VIRTUAL_ENV")
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    environment |= {"PATH": str(commands), "PYTHONPATH": str(ROOT), "SPARK_LOCAL_IP": "127.0.0.1"}
    done = subprocess.run(
        list(map(str, command)),
        env=environment | variables,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1]


def test_workers_run_the_python_of_a_program_that_has_a_session_already(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/log.db"
    with open_log_sync(url) as log:
        log.append_many("k", [1, 2, 3])
    command: list[object] = [sys.executable, "-c", OWN_SESSION, url]
    assert last_words(command, tmp_path, "#!/bin/sh\nexit 3\n", **driver()) == "3 rows"


@pytest.mark.slow
def test_options_of_spark_submit_come_before_ours_and_the_driver_has_the_python_of_workers(
    tmp_path: Path,
) -> None:
    program, home = tmp_path / "program.py", Path(pyspark.__file__).parent
    program.write_text(SUBMITTED)
    asked: list[object] = [home / "bin" / "spark-submit", "--master", "local[1]"]
    asked += ["--conf", "spark.sql.shuffle.partitions=3", "--driver-java-options", JAVA]
    variables = {"SPARK_HOME": str(home), "PYSPARK_DRIVER_PYTHON": sys.executable}
    assert last_words([*asked, program], tmp_path, **variables) == "local[1] 3 3"
