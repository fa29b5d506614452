"""Catalogue of benchmark datasets: URLs, checksums, shapes and citations.

URLs contain a commit, so their files never change. Shapes and cardinalities are those of the files listed
here. None marks a value that has not been counted, and `load` skips its check.

OpenML also has birds (40588), slashdot (40596) and yeast (40597), but in different files with labels TRUE
and FALSE, so they cannot serve as mirrors.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import MappingProxyType
from urllib.parse import quote

from labelsieve.datasets.animals import load_animals
from labelsieve.datasets.digits import load_digits_attributes
from labelsieve.datasets.synthetic import load_planted
from labelsieve.io.dataset import Dataset

_LICENCE = "No licence stated by the host. Use for research, cite the source, do not redistribute."


@dataclass(frozen=True)
class CatalogFile:
    """File of a dataset, with checksum and URLs."""

    name: str
    sha256: str
    urls: tuple[str, ...]


@dataclass(frozen=True)
class CatalogEntry:
    """Dataset of the catalogue.

    Attributes
    ----------
    name : str
        Name of the dataset.
    files : tuple of CatalogFile
        Files with the rows (train before test), and an XML file if it lists the labels. Empty for built-in
        datasets.
    shape : tuple of three int or None
        Number of samples, features and labels.
    cardinality : float or None
        Mean number of true labels per row, rounded to three digits.
    candidate_cardinality : float or None
        Mean number of candidate labels per row, if the dataset has candidate labels.
    identifiers : tuple of str
        Columns that identify the row. They are not features.
    domain : str
        Meaning of a row.
    citation : str
        Publication to cite.
    licence : str
        Terms of use stated by the host.
    altered : str
        Altered copies in circulation, which the checksums reject.
    remark : str
        Notes for users of the data.
    make : callable or None
        Function that makes a built-in dataset, or None.
    """

    name: str
    files: tuple[CatalogFile, ...]
    shape: tuple[int | None, int | None, int | None]
    cardinality: float | None
    domain: str
    citation: str
    candidate_cardinality: float | None = None
    identifiers: tuple[str, ...] = ()
    licence: str = _LICENCE
    altered: str = ""
    remark: str = ""
    make: Callable[[], Dataset] | None = None


@dataclass(frozen=True)
class _Repository:
    """Public repository at a commit."""

    slug: str
    commit: str
    folder: str

    def files(self, *sums: str) -> tuple[CatalogFile, ...]:
        """Return the files of a list in the format of sha256sum, each with its URL and a public mirror."""
        found = []
        for line in sums:
            sha256, path = line.split()
            place = quote(f"{self.folder}/{path}")
            urls = (
                f"https://raw.githubusercontent.com/{self.slug}/{self.commit}/{place}",
                f"https://cdn.jsdelivr.net/gh/{self.slug}@{self.commit}/{place}",
            )
            found.append(CatalogFile(path.rpartition("/")[2], sha256, urls))
        return tuple(found)


_MULAN = _Repository("tsoumakas/mulan", "43f6389095ad71984264db4387a8074b22bc7d4a", "data/multi-label")
_EML2 = _Repository("JiaxuanGood/EML2", "27c28e242815f6a2a7b2169404bd990cfe98236a", "data")
_TUEBINGEN = _Repository("lehneres/edu.uni-tuebingen", "c3276a50e69e076dc9e1dd41632c898fe10987de", "data")
_PMFS = _Repository("zhenzhenSun-FZU/PMFS-FLC", "7d6af5f38803070ec7ef2da64d82a6adfd75ac24", "data")
_PARTICLE = _Repository(
    "fangyan1221/partial-multi-label-learning",
    "6d93795c88c104c5b0cb50bcb6e2f2515c1fbe4f",
    "PML real-world datasets",
)

_YEAST_PML = "Yu et al., Feature-induced partial multi-label learning, ICDM 2018"

_ENTRIES = (
    # The eight datasets of the PML-FSMIR experiment.
    CatalogEntry(
        name="birds",
        files=_MULAN.files(
            "8f215db6ee163149901e753977f631ba8bea0e0e8e1abc42b234414822f8ae36  birds/birds-train.arff",
            "51ba6326d65ccdd7c755b6461280eb6d2769c7f59d8e12fd4250f91e6ca28326  birds/birds-test.arff",
            "0f4ea547b2b3d538c8402662daf689e0d4520cc8b4f5ba113c2e7c01700f010f  birds/birds.xml",
        ),
        shape=(645, 260, 19),
        cardinality=1.014,
        domain="sound recordings of birds",
        citation="Briggs et al., The 9th annual MLSP competition, MLSP 2013",
        altered="as .mat with a 20th 'no bird' label, or with two features stored as labels (258 x 21)",
        remark="two nominal features (location, hasSegments); 294 rows have no label",
    ),
    CatalogEntry(
        name="cal500",
        files=_MULAN.files(
            "cfe6097ba5fd6e8584e54911ab9783dcab34e898446b7c9370c71d477eae56d3  cal500/cal500.arff",
            "877e128531268d7661faa3e44f7bb43cbcda829c0895e49879168775b192728c  cal500/cal500.xml",
        ),
        shape=(502, 68, 174),
        cardinality=26.044,
        domain="songs",
        citation="Turnbull et al., IEEE Trans. Audio, Speech and Language Processing 16(2), 2008",
    ),
    CatalogEntry(
        name="chd_49",
        files=_EML2.files(
            "367ef2e5d3aeb0c4044f3193f5f6e637007af6656abc3cc92d36b93ad0d4ae48  CHD_49.arff",
            "5fbf7b5173a5e3cc0f5415fb276eb92fa9155000ebe2371ea8da0378b337a1cc  CHD_49.xml",
        ),
        shape=(555, 49, 6),
        cardinality=2.580,
        domain="patients with coronary heart disease",
        citation="Shao et al., 2013",
        remark="the XML lists the labels in a different order than the columns",
    ),
    CatalogEntry(
        name="corel5k",
        files=_MULAN.files(
            "12c06161d2367f919f6da912089a6c9180c115cfcefa37afacfdeb903930eb7e  corel5k/Corel5k-sparse.arff",
            "54ef6a6ccb7ca9b77524052b34b306d5d501661a5609b9d1cc7085b2b597679d  corel5k/Corel5k.xml",
        ),
        shape=(5000, 499, 374),
        cardinality=3.522,
        domain="photographs",
        citation="Duygulu et al., ECCV 2002",
        altered="with 125 features, or with the 374 labels inside X",
        remark="27 labels have one positive, 3 duplicate another label",
    ),
    CatalogEntry(
        name="languagelog",
        files=_EML2.files(
            "8ded3c6783708f42ea2cc5c3259557e33f9436296ea1e473915d2079bf801500  Langlog.arff",
            "3e55c75ea1bd4ba66805d9f91925625ec0d9b25eaca34433ec98c736a5844ef2  Langlog.xml",
        ),
        shape=(1460, 1004, 75),
        cardinality=1.180,
        domain="articles of a blog on language",
        citation="Read, PhD thesis, University of Waikato, 2010",
        altered="with one row lost, or with features as targets and the true labels inside X",
        remark="207 rows have no label; 85 features duplicate another",
    ),
    CatalogEntry(
        name="slashdot",
        files=_TUEBINGEN.files(
            "35c7b933211fc39c623252f2289de1460f588265a3df8be2c97f3090708476eb  SLASHDOT-F.arff",
        ),
        shape=(3782, 1079, 22),
        cardinality=1.181,
        domain="articles of a technology news site",
        citation="Read et al., Machine Learning 85(3), 2011",
        remark="two labels have no positives",
    ),
    CatalogEntry(
        name="water_quality",
        files=_EML2.files(
            "0f94e19c77974a09c1949b87f904add1d3bbfe0fbd4db74a41fb6a8ca71f1e66  Water_quality.arff",
            "6a09c567985732b1935fb54a755242340350bfc617d47fd474c516d09537233c  Water_quality.xml",
        ),
        shape=(1060, 16, 14),
        cardinality=5.073,
        domain="river water samples",
        citation="Blockeel, Dzeroski and Grbovic, PKDD 1999",
    ),
    CatalogEntry(
        name="yeast",
        files=_MULAN.files(
            "55c07a3b6ff885ae338fb6987a1d57f55572b29809922c2822c4885c61230dd7  yeast/yeast.arff",
            "c3056cc26444b5158b1588d1b73bec9c45429e10f0957ad085903423cb81f247  yeast/yeast.xml",
        ),
        shape=(2417, 103, 14),
        cardinality=4.237,
        domain="genes of baker's yeast",
        citation="Elisseeff and Weston, NIPS 2001",
    ),
    # Real candidate labels.
    CatalogEntry(
        name="mirflickr",
        files=_PMFS.files(
            "85fe1ab7d65994fca93d03b12b4375478977e9325bc56857cc8850db88cbde66  mirflickr.mat",
        ),
        shape=(5000, 100, 7),
        cardinality=1.771,
        candidate_cardinality=3.353,
        domain="photographs",
        citation="Fang and Zhang, Partial multi-label learning via credible label elicitation, AAAI 2019",
        altered="this file is itself a subset: 5000 of the published 10433 rows",
        remark="real candidate labels and true labels",
    ),
    CatalogEntry(
        name="yeast_bp",
        files=_PARTICLE.files(
            "b70add8402d72038123407fb8f0f05f9c5344a182769143856283f821c8bf97e  YeastBP.mat",
        ),
        shape=(6139, 6139, 217),
        cardinality=None,
        domain="genes of baker's yeast (biological process)",
        citation=_YEAST_PML,
        remark="real candidate labels",
    ),
    CatalogEntry(
        name="yeast_cc",
        files=_PARTICLE.files(
            "8df70196c615551b39bcd819b3a3d099e2a40e9dfcf2ca5cb13271c3dbad23bf  YeastCC.mat",
        ),
        shape=(None, None, 50),
        cardinality=None,
        domain="genes of baker's yeast (cellular component)",
        citation=_YEAST_PML,
        remark="real candidate labels",
    ),
    CatalogEntry(
        name="yeast_mf",
        files=_PARTICLE.files(
            "bd42e51ec848d847ef00d27574982c8ebc0f516246c68c6952d3ddf9424f02a7  YeastMF.mat",
        ),
        shape=(None, None, 39),
        cardinality=None,
        domain="genes of baker's yeast (molecular function)",
        citation=_YEAST_PML,
        remark="real candidate labels",
    ),
    # Further multi-label benchmarks.
    CatalogEntry(
        name="bibtex",
        files=_MULAN.files(
            "a282a6d1fb3cdaf39bde3f81cd4e6079850a7a538a6bc44f8b4ed95dfe1e5014  bibtex/bibtex.arff",
            "08fe20013c1e75dcf1888c185f5187c95e76495b8518ce289b4d3afce38d1232  bibtex/bibtex.xml",
        ),
        shape=(7395, 1836, 159),
        cardinality=2.402,
        domain="bibliography entries",
        citation="Katakis, Tsoumakas and Vlahavas, ECML PKDD Discovery Challenge 2008",
    ),
    CatalogEntry(
        name="delicious",
        files=_MULAN.files(
            "b944de0bca910050c11d97eed57d17b073110ea3646a587f3d15d127cf581aab  delicious/delicious.arff",
            "4e0c0f93c7d86a39b9fca4aaefaa00e9428f2c80277732dfbf03ca48e2c14da2  delicious/delicious.xml",
        ),
        shape=(16105, 500, 983),
        cardinality=19.020,
        domain="bookmarked web pages",
        citation="Tsoumakas, Katakis and Vlahavas, MMD workshop at ECML PKDD 2008",
    ),
    CatalogEntry(
        name="emotions",
        files=_MULAN.files(
            "6f2f790047073d1293ac0872c0d55f2dc98b6177802fc96c6b66b309dfee1e4b  emotions/emotions.arff",
            "dbce8e6ccbbb2fcbfd9e9edbb230d7ed12692c6e13f59fdbc0161fa9b6cf2dc0  emotions/emotions.xml",
        ),
        shape=(593, 72, 6),
        cardinality=1.869,
        domain="songs",
        citation="Trohidis et al., ISMIR 2008",
    ),
    CatalogEntry(
        name="enron",
        files=_MULAN.files(
            "d0889ef0576d4e7b5ec0df3b3e4760e476ac11a6e7d7ddeee4c4a34470dedf97  enron/enron.arff",
            "ed40c92d7f613eed51714912cab10dddc4ce456262137d8fef230d44c7f4457b  enron/enron.xml",
        ),
        shape=(1702, 1001, 53),
        cardinality=3.378,
        domain="emails",
        citation="Klimt and Yang, ECML 2004",
    ),
    CatalogEntry(
        name="flags",
        files=_MULAN.files(
            "d3ed8b5683f1b27e68069aad2c29388bb57d4caa5041b559e646cc3854a0cd1e  flags/flags.arff",
            "7c9ed21a91b716b91f811323e20ee5a260ea2da62a5edcfeb1b91ec855a48f17  flags/flags.xml",
        ),
        shape=(194, 19, 7),
        cardinality=3.392,
        domain="national flags",
        citation="Goncalves, Plastino and Freitas, ICTAI 2013",
    ),
    CatalogEntry(
        name="genbase",
        files=_MULAN.files(
            "cb23052a49191e36e9a59cd661e97d79bed2e3f2583030a206692b57bf1e3671  genbase/genbase.arff",
            "198e8a1d7070e9603119e02e626cedc589db7577339b307b06f5192047b69eb9  genbase/genbase.xml",
        ),
        shape=(662, 1185, 27),
        cardinality=1.252,
        domain="proteins",
        citation="Diplaris et al., PCI 2005",
        identifiers=("protein",),
        remark="the published 1186 features include the name of the protein, which is ignored",
    ),
    CatalogEntry(
        name="medical",
        files=_MULAN.files(
            "ad0630a9a409ed0023c3bb56a0be7610b635c1ca185c6035e3b198b01167aac4  medical/medical.arff",
            "51fa9d5c09e48caff3f0a0c75db1c9aa85944f8e35451f3ad8bd56fc422286ce  medical/medical.xml",
        ),
        shape=(978, 1449, 45),
        cardinality=1.245,
        domain="clinical reports",
        citation="Pestian et al., BioNLP workshop at ACL 2007",
    ),
    CatalogEntry(
        name="scene",
        files=_MULAN.files(
            "b53ba93bdf412de922e3960389bcee24744fa3e872ce610511fc1d750888b64d  scene/scene-train.arff",
            "ea38d20296b3ff7e220f477a3b802a9bcb2d768881fe6ee163efbc97ea527a42  scene/scene-test.arff",
            "55d8b247b949ad5c52e5a73d8c6775ec6e5469ce9682465b45b333b68ee4bcc5  scene/scene.xml",
        ),
        shape=(2407, 294, 6),
        cardinality=1.074,
        domain="photographs",
        citation="Boutell et al., Pattern Recognition 37(9), 2004",
    ),
    CatalogEntry(
        name="tmc2007",
        files=_MULAN.files(
            "3ea7e95dd80a78a3e7d521d77c3371bfef888da1d364b5a3bb71c7222ad7f013  tmc2007/tmc2007-500.arff",
            "cb6a67c8ae72fd9b47d89f77aa5b7f6cafb4ba9c20b1124c65a95a3f2caec38d  tmc2007/tmc2007-500.xml",
        ),
        shape=(28596, 500, 22),
        cardinality=2.158,
        domain="aviation safety reports",
        citation="Srivastava and Zane-Ulman, IEEE Aerospace Conference 2005",
    ),
    # Built in.
    CatalogEntry(
        name="animals",
        files=(),
        shape=(101, 11, 12),
        cardinality=2.356,
        candidate_cardinality=3.208,
        domain="animals",
        citation="Forsyth, Zoo, UCI Machine Learning Repository, 1990",
        licence="CC BY 4.0.",
        remark="tags; each tag that an animal does not have was added with probability 0.1",
        make=load_animals,
    ),
    CatalogEntry(
        name="digits",
        files=(),
        shape=(1797, 64, 9),
        cardinality=3.794,
        candidate_cardinality=4.85,
        domain="handwritten digits",
        citation="Alpaydin and Kaynak, UCI Machine Learning Repository, 1998",
        licence="BSD-3, as part of scikit-learn.",
        remark="labels are attributes of the digit; candidates with 20% flip noise",
        make=load_digits_attributes,
    ),
    CatalogEntry(
        name="planted",
        files=(),
        shape=(300, 60, 8),
        cardinality=2.26,
        domain="random numbers",
        citation="labelsieve, make_pml, 2026",
        licence="BSD-3, as part of labelsieve.",
        remark="8 of 60 features are informative; labels without noise",
        make=load_planted,
    ),
)

CATALOG = MappingProxyType({entry.name: entry for entry in _ENTRIES})
"""Datasets that `load` knows by name.

Examples
--------
>>> entry = CATALOG["yeast"]
>>> entry.shape, entry.cardinality
((2417, 103, 14), 4.237)
"""
